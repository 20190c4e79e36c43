import { Command } from "commander";
import { bySize, linesDocument, readSource, sourcePath } from "../../inspect/index.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { LinesJson } from "../../model/documents/documents.js";
import { nothingThere } from "../../model/errors/errors.js";
import {
  MOMENT_HELP,
  openRecordingAt,
  parseMoment,
  sayMissing,
  seenAt,
} from "../files/recordings.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  inOrderOf,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import {
  type ByOption,
  type WhereOption,
  withByOption,
  withWhereOption,
} from "../options/row_options.js";
import { printLines } from "../screens/lines.js";
import { printJson, screenOf } from "../text/output.js";

interface LinesOptions extends CommonOptions, ListOptions, WhereOption, ByOption {
  readonly at: string;
}
type LineRow = LinesJson["lines"][number];

const DEFAULT_LINES = 25;

const LARGEST_SOURCE = 16 * 2 ** 20;

export const about: CommandAbout = {
  group: "recordings",
  summary: "show memory by source line",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("lines")
    .description(
      "Memory by source line: each allocation is attributed to the line of your own code that led to it, to\n" +
        "that of a library if none did, or, with FILE, to the innermost line of that file.",
    )
    .argument("<recording>", "a .tidemark file")
    .argument("[file]", "only this source file: its path, or the end of its path")
    .option("--at <moment>", MOMENT_HELP, "end");
  withWhereOption(command);
  withByOption(command, "lines", "thread, process, rank, label, domain, step");
  withListOptions(command, "lines", DEFAULT_LINES);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark lines app.tidemark",
    "tidemark lines app.tidemark src/loader.py",
    "tidemark lines app.tidemark --at peak --min 1MiB --json",
    "tidemark lines app.tidemark --where thread=worker",
  ).action(lines);
}

function lines(path: string, file: string | undefined, options: LinesOptions): void {
  const recording = openRecordingAt(path);
  const { moment, name } = parseMoment(options.at, recording);
  const document = linesDocument(recording, moment, file, options);
  const notes = document.imported === undefined ? document.limits : [];
  if (file !== undefined && document.lines.length === 0) {
    const only = document.where === undefined ? "" : ` with ${document.where}`;
    throw nothingThere(
      `the profile has no allocation from ${file}${only}`,
      `the files that have some: tidemark lines ${shellWord(path)}`,
    );
  }
  const largest = (row: LineRow) =>
    Math.max(row.liveBytes, row.liveBytesAtPeak, document.imported ? row.allocatedBytes : 0);
  const chosen = selectRows(
    document.lines.toSorted(bySize),
    options,
    options.json === true || file !== undefined ? 0 : DEFAULT_LINES,
    largest,
    (row) => `${row.file}:${row.line} ${row.function} ${row.group ?? ""}`,
  );
  const rows = inOrderOf(document.lines, chosen.rows);
  if (options.json === true) {
    printJson({ ...document, lines: rows } satisfies LinesJson);
    return;
  }
  sayMissing(recording);
  const seen = seenAt(name, { atMs: document.atMs, startMs: recording.startMs });
  printLines(screenOf(process.stdout), rows, {
    imported: document.imported,
    isWhole: recording.missing === null,
    recordedMs: recording.meta.startedMs,
    notes: seen === name ? notes : [`Figures at ${seen}.`, ...notes],
    moment: name,
    byLine: file !== undefined,
    leftOut: chosen.leftOut,
    unmatched: chosen.unmatched,
    where: document.where,
    by: document.by,
    pathOf: (file) => sourcePath(recording.meta, file),
    readText: (path) => readSource(path, LARGEST_SOURCE)?.text,
  });
}
