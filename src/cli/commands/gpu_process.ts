/** `tidemark gpu PID`, which prints a screen or, with -o, writes a file. */
import { writeFile } from "node:fs/promises";
import { gpuProcessDocument, gpuProcessPage } from "../../inspect/index.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type { GpuProcessJson } from "../../model/documents/gpu/gpu_process_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { ownKind, type Replacing, requireReplaceable } from "../files/own_files.js";
import { writeReport } from "../files/report_page.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import { withInterrupt } from "../options/interrupt.js";
import { type CommonOptions, type ListOptions, selectRows } from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { DEFAULT_TENSORS, printGpuProcess, tensorText } from "../screens/gpu/process.js";
import { printJson, printNote, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface GpuProcessOptions extends CommonOptions, ListOptions {
  readonly output?: string;
  readonly force?: boolean;
}

const WAIT_MS: Millis = 30_000;
/** Copying a heap takes about 300 ms per GiB; a program that serves requests must not be paused for longer. */
const MOST_PAUSE_MS: Millis = 500;

/** The pprof format, the only one in which JAX writes its device profile. */
const PROFILE_NAME = /\.(?:pb|pb\.gz|pprof)$/i;

export async function showGpuProcess(pid: Pid, options: GpuProcessOptions): Promise<void> {
  requireLinux();
  const { output } = options;
  if (output !== undefined && !PROFILE_NAME.test(output)) {
    return writeProcessPage(pid, output, options);
  }
  if (output !== undefined) {
    requireOtherFile(output, `/proc/${pid}/exe`);
    requireReplaceable(output, profileReplacing(options));
  }
  const { document, profile } = await withInterrupt((signal) =>
    gpuProcessDocument({
      pid,
      exec: { waitMs: WAIT_MS, signal, onWaiting: reportWaiting(pid, options) },
      maxPauseMs: MOST_PAUSE_MS,
      wantsProfile: output !== undefined,
    }),
  );
  if (output !== undefined) {
    await writeProfile(output, profile, options);
    return;
  }
  if (options.json !== true) {
    printGpuProcess(screenOf(process.stdout), document, options);
    return;
  }
  printJson({ ...document, tensors: chosen(document, options) });
}

function reportWaiting(pid: Pid, options: CommonOptions): (doing: string) => void {
  return (doing) => {
    if (options.quiet !== true) {
      printNote(`waiting for process ${pid}: ${doing}`);
    }
  };
}

function chosen(document: GpuProcessJson, options: ListOptions): GpuProcessJson["tensors"] {
  return document.tensors === null
    ? null
    : selectRows(document.tensors, options, DEFAULT_TENSORS, ({ bytes }) => bytes, tensorText).rows;
}

async function writeProfile(
  output: string,
  profile: Buffer | null,
  options: GpuProcessOptions,
): Promise<void> {
  if (profile === null) {
    throw badUsage(
      `${output} would be JAX's device profile, but this program has none`,
      "omit -o, or write the page of torch's allocator: -o devices.html",
    );
  }
  await writeWhole(output, profileReplacing(options), (path) => writeFile(path, profile));
  sayWritten("pprof", [output], options);
}

/** JAX writes this profile; it contains no mark of Tidemark. */
function profileReplacing({ force }: GpuProcessOptions): Replacing {
  return { force, isOwn: () => false };
}

/** The page of torch's allocator as the program reports it now. */
async function writeProcessPage(
  pid: Pid,
  output: string,
  options: GpuProcessOptions,
): Promise<void> {
  const replacing: Replacing = { force: options.force, isOwn: ownKind("page") };
  requireOtherFile(output, `/proc/${pid}/exe`);
  requireReplaceable(output, replacing);
  // Outside writeWhole, which on an interrupt would leave the request pending in the program.
  const document = await withInterrupt((signal) =>
    gpuProcessPage(pid, { waitMs: WAIT_MS, signal, onWaiting: reportWaiting(pid, options) }),
  );
  if (document.devices.every(({ replay }) => replay.events === 0) && options.quiet !== true) {
    printNote(
      `process ${pid} records no history, so the page shows only this moment; tidemark attach ${pid} --gpu enables it`,
    );
  }
  await writeWhole(output, replacing, (file) =>
    withProgress(output, "MiB", options, (onProgress) => writeReport(document, file, onProgress)),
  );
  sayWritten("html", [output], options);
}
