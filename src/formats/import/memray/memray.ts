/** Capture files of `memray run`, with every allocation or with totals (`--aggregate`). */
import { shellWord } from "../../../model/base/shell_word.js";
import { nothingThere, TidemarkError } from "../../../model/errors/errors.js";
import { Cursor } from "../cursor.js";
import { ImportedSites } from "../imported_sites.js";
import type { ForeignFile, ForeignRecording, ProfileImporter } from "../importer.js";
import { readAggregated } from "./aggregated.js";
import {
  type MemrayContent,
  type MemrayHeader,
  memrayVersion,
  NEWEST_MEMRAY,
  OLDEST_MEMRAY,
  readHeader,
} from "./header.js";
import { readAllocations } from "./records.js";

export const memray: ProfileImporter = {
  name: "memray",
  description: "memray: capture files (.bin), format 11 to 13, also with --aggregate",
  recognizes: ({ head }) => head.startsWith("memray\0"),
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const cursor = new Cursor(file.bytes);
  const version = memrayVersion(cursor);
  if (version < OLDEST_MEMRAY || version > NEWEST_MEMRAY) {
    throw otherVersion(file.path, version);
  }
  const header = readHeader(cursor, version);
  const command = programOf(header.command.split(" ").filter((word) => word !== ""));
  const sites = new ImportedSites({
    pid: header.pid,
    command,
    python: pythonVersion(header.pythonVersion),
    startedMs: header.startedMs,
  });
  const content = header.aggregated
    ? readAggregated(cursor, header, sites)
    : readAllocations(cursor, header, sites, file.path);
  const endedMs = Math.max(header.startedMs, header.endedMs, content.lastMs);
  const peakMs = content.peakMs || endedMs;
  const snapshot = sites.snapshot(endedMs, endedMs - header.startedMs, peakMs);
  if (snapshot.sites.length === 0) {
    throw nothingThere(
      `${file.path} contains no allocation`,
      "record a longer part of the program",
    );
  }
  return {
    tool: `memray (format ${version})`,
    precision: "exact",
    known: content.known,
    tables: sites.tables(),
    snapshots: [snapshot],
    startedMs: header.startedMs,
    endedMs,
    metrics: content.metrics,
    events: [],
    lines: [],
    limits: limitsOf(header, content),
  };
}

function limitsOf(header: MemrayHeader, { complete }: MemrayContent): string[] {
  return [
    ...(complete
      ? []
      : [
          "The file has no end: memray's program was killed, or the file was cut off. Its last allocations are missing.",
        ]),
    ...(header.nativeTraces
      ? [
          "Native frames are left out: the file contains only their addresses. Stacks end at the Python line.",
        ]
      : []),
    ...(header.tracesPythonAllocators
      ? []
      : [
          "Small Python objects are counted as the arenas that hold them: memray ran without --trace-python-allocators.",
        ]),
  ];
}

function otherVersion(path: string, version: number): TidemarkError {
  return new TidemarkError(
    "TM-E006",
    2,
    `${path} has memray's format version ${version}, this Tidemark reads ${OLDEST_MEMRAY} to ${NEWEST_MEMRAY}`,
    version > NEWEST_MEMRAY ? "a newer memray wrote it" : "an older memray wrote it",
    `convert it with the memray that wrote it: memray transform speedscope -o peak.json ${shellWord(path)}, then: tidemark import peak.json --value peak`,
  );
}

/** Options of `memray run` that are followed by their value, alone or behind others: "-qfo app.bin". */
const WITH_VALUE = /^(?:-[A-Za-z]*[op]|--output|--live-port)$/;

/** The program that memray ran: "app.py 1" of "/env/bin/memray run -o app.bin app.py 1". */
function programOf(command: readonly string[]): readonly string[] {
  const [memrayItself = "", run] = command;
  if (run !== "run" || !/(?:^|\/)memray(?:\/__main__\.py)?$/.test(memrayItself)) {
    return command;
  }
  for (let at = 2; at < command.length; at++) {
    const word = command[at] ?? "";
    if (word === "-m" || word === "-c") {
      return ["python", ...command.slice(at)];
    }
    if (WITH_VALUE.test(word)) {
      at += 1;
    } else if (!word.startsWith("-")) {
      return command.slice(at);
    }
  }
  return command;
}

/** The version that memray was compiled for (PY_VERSION_HEX), of which the last part may differ: 0x030c01f0 is 3.12. */
function pythonVersion(hex: number): string {
  return hex === 0 ? "" : `${hex >> 24}.${(hex >> 16) & 255}`;
}
