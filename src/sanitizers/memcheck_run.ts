/** Valgrind's options, and the XML files of its processes. */
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { OnProgress, Pid } from "../model/base/units.js";
import { filesOfProcesses } from "./findings/python_frames.js";
import type { Report, ReportFile } from "./reports/report.js";
import { ValgrindReader } from "./reports/valgrind_xml.js";

const PIECE_BYTES = 1 << 20;
/** More of a file is not read. */
const MOST_BYTES = 1 << 30;

/**
 * Blocks that still have a pointer and that were allocated while a module was imported: with pandas, more than 99 % of
 * 630 MB of XML.
 */
const MADE_AT_IMPORT = `{
   tidemark: made while a module is imported
   Memcheck:Leak
   match-leak-kinds: reachable,possible,indirect
   ...
   fun:PyImport_ImportModuleLevelObject
}
`;

/** Programs of shell scripts, such as pyenv's, that start no others: under Valgrind each takes a second. */
const SMALL_PROGRAMS =
  "basename cat cut date dirname expr grep head id ln ls mkdir readlink realpath rm sed sort tail tr uname uniq wc"
    .split(" ")
    .map((name) => `/bin/${name},/usr/bin/${name}`)
    .join(",");

/**
 * The words before the program. Each process, children too, writes a file of its own. `all`: including every block that
 * is left at the end.
 */
export function valgrindWords(
  folder: string,
  { suppressions = [], all = false }: { suppressions?: readonly string[]; all?: boolean } = {},
): string[] {
  const madeAtImport = join(folder, "import.supp");
  writeFileSync(madeAtImport, MADE_AT_IMPORT);
  return [
    "valgrind",
    "--tool=memcheck",
    "--xml=yes",
    `--xml-file=${join(folder, "valgrind.%p.xml")}`,
    // Keeps Valgrind's other output out of the program's stderr. With %p here, Valgrind 3.19 writes the XML of a forked
    // child into its parent's file.
    `--log-file=${join(folder, "log")}`,
    "--trace-children=yes",
    `--trace-children-skip=${SMALL_PROGRAMS}`,
    // Valgrind runs one thread at a time; otherwise a busy thread may keep the others waiting.
    "--fair-sched=try",
    "--track-origins=yes",
    "--leak-check=full",
    "--show-leak-kinds=all",
    "--num-callers=50",
    "--error-limit=no",
    "--keep-debuginfo=yes",
    ...[...(all ? [] : [madeAtImport]), ...suppressions].map((path) => `--suppressions=${path}`),
  ];
}

/** `onProgress` counts MiB. */
export async function readXmlFolder(folder: string, onProgress: OnProgress): Promise<ReportFile[]> {
  const files = filesOfProcesses(folder, "valgrind.").filter(({ path }) => statSync(path).size > 0);
  const sizes = files.map(({ path }) => statSync(path).size);
  const mib = (bytes: number) => Math.ceil(bytes / 2 ** 20);
  const total = sizes.reduce((sum, size) => sum + Math.min(size, MOST_BYTES), 0);
  const read: ReportFile[] = [];
  let done = 0;
  await onProgress(0, mib(total)); // the program's own time does not count in the rate
  for (const { path, pid } of files) {
    const file = await readXml(path, async (bytes) => onProgress(mib(done + bytes), mib(total)));
    done += Math.min(sizes[read.length] ?? 0, MOST_BYTES);
    read.push({ ...file, pid, reports: file.reports.map(withOverflow(folder, pid)) });
  }
  return read;
}

/** Valgrind names a stack overflow, after which it cannot walk the stack, only in its text. */
function withOverflow(folder: string, pid: Pid): (report: Report) => Report {
  const log = join(folder, "log");
  const words = `==${pid}== Stack overflow in thread`;
  const isFull = existsSync(log) && readFileSync(log, "utf8").includes(words);
  return (report) =>
    isFull && report.kind === "FatalSignal"
      ? { ...report, message: `${report.message}: stack overflow` }
      : report;
}

/** Throws TM-E091 for an unknown protocol. */
export async function readXml(
  path: string,
  onProgress: (bytes: number) => Promise<void>,
): Promise<ReportFile> {
  const reader = new ValgrindReader();
  const descriptor = openSync(path, "r");
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let at = 0; at < MOST_BYTES; ) {
      const count = readSync(descriptor, piece, 0, PIECE_BYTES, at);
      if (count === 0) {
        break;
      }
      reader.write(piece.subarray(0, count));
      at += count;
      await onProgress(at);
    }
    return reader.end();
  } finally {
    closeSync(descriptor);
  }
}
