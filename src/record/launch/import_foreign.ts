import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type ForeignRecording, type ImportOptions, readForeign } from "../../formats/index.js";
import { TIDEMARK_VERSION } from "../../linux/installation.js";
import {
  IMPORTED_FIGURES,
  type ImportedFigure,
  type ImportedSource,
} from "../../model/profile/imported.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import { RecordingWriter } from "../../recording/writer.js";

/** Relative paths that are looked for; most files have one. */
const MOST_TRIED = 100;
const NO_AGENT = { samples: 0, lost: 0, cpuMs: 0, periodBytes: 0 };

/**
 * Converts another tool's file to a recording. What the tool does not measure is stored as 0 and listed in the
 * recording's description as unknown. Throws as readForeign().
 */
export function importForeign(path: string, recordingPath: string, options: ImportOptions): void {
  const foreign = readForeign(path, options);
  const writer = new RecordingWriter(FileSink.open(recordingPath));
  try {
    write(writer, foreign, sourceOf(path, foreign));
    if (writer.failure) {
      throw writer.failure;
    }
  } finally {
    writer.close();
  }
}

function sourceOf(
  path: string,
  { tool, known, precision, lines, tables }: ForeignRecording,
): ImportedSource {
  const unknown = IMPORTED_FIGURES.filter((figure) => !known.includes(figure));
  return {
    tool,
    file: basename(path),
    folder: sourceFolder(dirname(resolve(path)), tables.strings),
    unknown,
    precision,
    ...(lines.length === 0 ? {} : { lines }),
  };
}

/** The folder that relative paths in the file start from: the file's own, or the working directory if it has them. */
function sourceFolder(folder: string, strings: readonly string[]): string {
  const relative = strings.filter((text) => /^[^/<].*\.pyw?$/.test(text)).slice(0, MOST_TRIED);
  const has = (place: string) => relative.some((file) => existsSync(resolve(place, file)));
  return !has(folder) && has(process.cwd()) ? process.cwd() : folder;
}

function write(writer: RecordingWriter, foreign: ForeignRecording, imported: ImportedSource): void {
  const { startedMs, endedMs, tables } = foreign;
  const process = tables.processes[0] ?? { pid: 0, parentPid: 0, command: [], python: "" };
  const { pid, parentPid, command, python } = process;
  writer.begin({
    tidemarkVersion: TIDEMARK_VERSION,
    command,
    pid,
    startedMs,
    host: "",
    kernel: "",
    runId: "",
    periodBytes: 0,
    keeper: null,
    recorder: { pid: 0, startTicks: 0 },
    imported,
  });
  const profiled = foreign.snapshots.length > 0;
  writer.processes(startedMs, [
    { series: 0, pid, parentPid, command, python, profiled, startedMs, endedMs },
  ]);
  writer.metrics(
    endedMs,
    foreign.metrics.flatMap((row) => [
      { ...row, series: 0 },
      // The process is the whole tree.
      ...(row.metric === "rssBytes"
        ? [{ ...row, metric: "treeRssBytes" as const, series: 0 }]
        : []),
    ]),
  );
  writer.events(endedMs, foreign.events);
  foreign.snapshots.forEach((snapshot, index) => {
    const isLast = index === foreign.snapshots.length - 1;
    writer.snapshot(tables, snapshot, { kind: isLast ? "end" : "poll", agent: NO_AGENT });
  });
  writer.limits(endedMs, [unknownText(imported), ...foreign.limits]);
  writer.end({
    timeMs: endedMs,
    exitCode: null,
    signal: null,
    maxRssBytes: 0,
    userMs: 0,
    systemMs: 0,
  });
}

const NAMES: Readonly<Record<ImportedFigure, string>> = {
  live: "live bytes",
  peak: "bytes at the peak",
  allocated: "allocated bytes",
  objects: "numbers of objects",
  rss: "RSS",
  time: "times",
  python: "the share of Python's allocators",
};

function unknownText({ tool, file, unknown }: ImportedSource): string {
  const names = unknown.map((figure) => NAMES[figure]);
  const rest =
    names.length === 0
      ? ""
      : ` Unknown, because the file does not contain them: ${names.join(", ")}.`;
  return `Imported from ${file} (${tool}).${rest}`;
}
