import { realpathSync } from "node:fs";
import { Command } from "commander";
import { summarize } from "../../inspect/recorded/summary.js";
import type { FrameJson, LinesJson, SummaryJson, SummarySiteJson } from "../../model/documents.js";
import { nothingThere } from "../../model/errors.js";
import { MOMENT_HELP, openRecordingAt, parseMoment } from "../files/recordings.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { printLines } from "../screens/lines.js";
import { addUp, splitStack } from "../screens/sites.js";
import { printJson, screenOf } from "../text/output.js";

interface LinesOptions extends CommonOptions, ListOptions {
  readonly at: string;
}
type LineRow = LinesJson["lines"][number];

const DEFAULT_LINES = 25;

export function buildCommand(): Command {
  const command = new Command("lines")
    .description(
      "Memory by source line: each allocation counts at the line of your own code that led to it,\n" +
        "or, with FILE, at the innermost line of that file.",
    )
    .argument("<recording>", "a .tidemark file")
    .argument("[file]", "only this source file: its path, or the end of it")
    .option("--at <moment>", MOMENT_HELP, "end");
  withListOptions(command, "lines", DEFAULT_LINES);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark lines app.tidemark",
    "tidemark lines app.tidemark src/loader.py",
    "tidemark lines app.tidemark --at peak --min 1MiB --json",
  ).action(lines);
}

function lines(path: string, file: string | undefined, options: LinesOptions): void {
  const recording = openRecordingAt(path);
  const { moment, name } = parseMoment(options.at, recording);
  const summary = summarize(recording, moment);
  const rows = collectLines(summary, file);
  if (file !== undefined && rows.length === 0) {
    throw nothingThere(`nothing was allocated from ${file}`, `see tidemark lines ${path}`);
  }
  const largest = (row: LineRow) => Math.max(row.liveBytes, row.liveBytesAtPeak);
  const chosen = selectRows(
    rows,
    options,
    options.json === true || file !== undefined ? 0 : DEFAULT_LINES,
    largest,
    (row) => `${row.file}:${row.line} ${row.function}`,
  );
  if (options.json === true) {
    const document: LinesJson = {
      schema: "tidemark.lines/1",
      target: summary.target,
      atMs: summary.atMs,
      lines: chosen.rows,
      limits: summary.limits,
    };
    printJson(document);
    return;
  }
  printLines(screenOf(process.stdout), chosen.rows, {
    moment: name,
    byLine: file !== undefined,
    leftOut: chosen.leftOut,
  });
}

/** Sites by the line they count at; by size, or by line where one file was asked for. */
function collectLines(summary: SummaryJson, file: string | undefined): LineRow[] {
  const matches = file === undefined ? null : fileMatcher(file);
  const byLine = new Map<string, { frame: FrameJson; sites: SummarySiteJson[] }>();
  for (const site of summary.sites) {
    const frame = matches ? site.stack.find(matches) : splitStack(site.stack).headline;
    if (frame === undefined) {
      continue;
    }
    const key = JSON.stringify([frame.file, frame.line, frame.function]);
    const entry = byLine.get(key);
    if (entry) {
      entry.sites.push(site);
    } else {
      byLine.set(key, { frame, sites: [site] });
    }
  }
  const rows = [...byLine.values()].map(({ frame, sites }) => lineOf(frame, sites));
  return matches
    ? rows.sort((a, b) => a.line - b.line)
    : rows.sort((a, b) => b.liveBytes - a.liveBytes || b.liveBytesAtPeak - a.liveBytesAtPeak);
}

function lineOf(frame: FrameJson, sites: readonly SummarySiteJson[]): LineRow {
  const live = addUp(sites, (site) => [site.liveBytes, site.standardErrorBytes]);
  const sum = (figure: (site: SummarySiteJson) => number) =>
    sites.reduce((total, site) => total + figure(site), 0);
  const atPeak = sum((site) => site.liveBytesAtPeak);
  const python = sum((site) => (site.domain === "python" ? site.liveBytesAtPeak : 0));
  return {
    file: frame.file,
    line: frame.line,
    function: frame.function,
    liveBytes: live.bytes,
    liveBytesAtPeak: atPeak,
    allocatedBytes: sum((site) => site.allocatedBytes),
    pythonShare: atPeak > 0 ? python / atPeak : 0,
    standardErrorBytes: live.standardErrorBytes,
  };
}

/** Frames of a file named by its path, its real path, or whole components from its end. */
function fileMatcher(file: string): (frame: FrameJson) => boolean {
  const names = [file.replace(/^(?:\.\/)+/, "")];
  try {
    names.push(realpathSync(file));
  } catch {
    // Recorded elsewhere: the name alone decides.
  }
  return (frame) =>
    names.some((name) => frame.file === name || frame.file.endsWith(`/${name.replace(/^\//, "")}`));
}
