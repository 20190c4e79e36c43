/** The document of `tidemark lines`: memory by source line. */
import { realpathSync } from "node:fs";
import { interval95 } from "../../model/base/interval.js";
import type { FrameJson, LinesJson, SummarySiteJson } from "../../model/documents/documents.js";
import type { LineFigures } from "../../model/profile/imported.js";
import type { Profile } from "../../model/profile/profile.js";
import { groupRows, rowColumn } from "../../model/profile/row_filter.js";
import { pickSites } from "../../model/profile/site_columns.js";
import type { Moment, Recording } from "../../recording/types.js";
import { lineFigures } from "./line_figures.js";
import { checkKey, chosenRows, type RowChoice } from "./rows/chosen_rows.js";
import { sitesOf } from "./rows/profile_sites.js";
import { addUp, splitStack } from "./rows/site_groups.js";
import { summarize } from "./summary.js";

type LineRow = LinesJson["lines"][number];

/**
 * Attributes each site to a source line: the line of the user's own code that led to the allocation, or, with
 * `file`, the innermost line of that file. Rows are ordered by size, with `by` then
 * by group; with `file`, by line number.
 * Throws TidemarkError (TM-E014) for a time outside the recording, and for rows that it does not have.
 */
export function linesDocument(
  recording: Recording,
  moment: Moment,
  file: string | undefined,
  { where = [], by }: RowChoice = {},
): LinesJson {
  const summary = summarize(recording, moment, { where });
  return {
    schema: "tidemark.lines/1",
    target: summary.target,
    ...(summary.imported === undefined ? {} : { imported: summary.imported }),
    atMs: summary.atMs,
    ...(summary.where === undefined ? {} : { where: summary.where }),
    ...(by === undefined ? {} : { by }),
    lines:
      by === undefined
        ? withLineFigures(
            collectLines(summary.sites, file),
            chosenRows(recording, where),
            moment,
            file,
          )
        : linesByGroup(chosenRows(recording, where), moment, by, file),
    limits: summary.limits,
  };
}

/** Adds what was measured by line: by the imported file's tool, or in every snapshot of our own recording. */
function withLineFigures(
  rows: readonly LineRow[],
  recording: Recording,
  moment: Moment,
  file: string | undefined,
): LineRow[] {
  const { imported } = recording.meta;
  const matches = file === undefined ? () => true : fileMatcher(file);
  const own =
    imported === undefined && recording.snapshots.length > 0
      ? lineFigures(recording, moment, lineOfStack(file))
      : (imported?.lines ?? []).filter(matches);
  // Another tool may name the function differently.
  const key = (row: { file: string; line: number; function: string }) =>
    `${row.line} ${row.file} ${imported === undefined ? row.function : ""}`;
  const seen = new Set<string>();
  const byLine = new Map(own.map((line) => [key(line), line]));
  const known = rows.map((row): LineRow => {
    const figures = seen.has(key(row)) ? undefined : byLine.get(key(row));
    seen.add(key(row));
    return figures === undefined ? row : { ...row, ...figuresOf(figures) };
  });
  const others = own
    .filter((line) => !seen.has(key(line)))
    .map(
      (line): LineRow => ({
        ...{ file: line.file, line: line.line, function: line.function },
        ...{ liveBytes: 0, liveBytesAtPeak: 0, allocatedBytes: 0 },
        ...{ pythonShare: 0, standardErrorBytes: 0 },
        ...figuresOf(line),
      }),
    );
  const all = [...known, ...others];
  return all.sort(file === undefined ? bySize : ascending);
}

function figuresOf({ peakBytes, copiedBytes }: LineFigures): Partial<LineRow> {
  return {
    ...(peakBytes === null ? {} : { peakBytes }),
    ...(copiedBytes === null ? {} : { copiedBytes }),
  };
}

/** Each line once for each group of its allocations. */
function linesByGroup(
  recording: Recording,
  moment: Moment,
  by: string,
  file: string | undefined,
): LineRow[] {
  const [now, peak] = [recording.profileAt(moment), recording.profileAt("peak")];
  checkKey(recording, now, by);
  const rowsNow = groupRows(rowColumn(now, by), now.sites);
  const rowsAtPeak = groupRows(rowColumn(peak, by), peak.sites);
  const rows = [...new Set([...rowsNow.keys(), ...rowsAtPeak.keys()])].sort().flatMap((group) => {
    const sites = sitesOf(
      withRows(now, rowsNow.get(group) ?? []),
      withRows(peak, rowsAtPeak.get(group) ?? []),
    );
    return collectLines(sites, file).map((line) => ({ group, ...line }));
  });
  return rows.sort(file === undefined ? bySize : ascending);
}

function withRows(profile: Profile, rows: readonly number[]): Profile {
  return { ...profile, sites: pickSites(profile.sites, rows, profile.cohorts.length) };
}

function collectLines(sites: readonly SummarySiteJson[], file: string | undefined): LineRow[] {
  const lineOfSite = lineOfStack(file);
  const byLine = new Map<string, { frame: FrameJson; sites: SummarySiteJson[] }>();
  for (const site of sites) {
    const frame = lineOfSite(site.stack);
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
  return rows.sort(file === undefined ? bySize : ascending);
}

/** The frame of a stack, leaf first, whose line a site counts for. */
function lineOfStack(
  file: string | undefined,
): (stack: readonly FrameJson[]) => FrameJson | undefined {
  if (file === undefined) {
    return (stack) => splitStack(stack).headline;
  }
  const matches = fileMatcher(file);
  return (stack) => stack.find(matches);
}

/** Sorted by the figure that is shown first. */
export function bySize(a: LineRow, b: LineRow): number {
  return (
    b.liveBytes - a.liveBytes ||
    b.liveBytesAtPeak - a.liveBytesAtPeak ||
    b.allocatedBytes - a.allocatedBytes ||
    (b.copiedBytes ?? 0) - (a.copiedBytes ?? 0)
  );
}

function ascending(a: LineRow, b: LineRow): number {
  return a.line - b.line;
}

function lineOf(frame: FrameJson, sites: readonly SummarySiteJson[]): LineRow {
  const live = addUp(sites, (site) => [site.liveBytes, site.standardErrorBytes]);
  const sum = (figure: (site: SummarySiteJson) => number) =>
    sites.reduce((total, site) => total + figure(site), 0);
  // Share of the figure that is shown first; if nothing is live any more, of the peak, then of all allocations.
  const atPeak = sum((site) => site.liveBytesAtPeak);
  const shown = (site: SummarySiteJson) => {
    if (live.bytes > 0) {
      return site.liveBytes;
    }
    return atPeak > 0 ? site.liveBytesAtPeak : site.allocatedBytes;
  };
  const python = sum((site) => (site.domain === "python" ? shown(site) : 0));
  const all = sum(shown);
  return {
    file: frame.file,
    line: frame.line,
    function: frame.function,
    liveBytes: live.bytes,
    liveBytesAtPeak: atPeak,
    allocatedBytes: sum((site) => site.allocatedBytes),
    pythonShare: all > 0 ? python / all : 0,
    standardErrorBytes: live.standardErrorBytes,
    ...(sites.some((site) => site.interval95Bytes === undefined)
      ? {}
      : { interval95Bytes: interval95(live.bytes, live.standardErrorBytes) }),
  };
}

/** Matches frames of a file that is named by its path, its real path, or whole components from its end. */
function fileMatcher(file: string): (frame: Pick<FrameJson, "file">) => boolean {
  const names = [file.replace(/^(?:\.\/)+/, "")];
  try {
    names.push(realpathSync(file));
  } catch {
    // Recorded on another machine: only the name decides.
  }
  return ({ file: recorded }) =>
    names.some(
      (name) =>
        recorded === name ||
        recorded.endsWith(`/${name.replace(/^\//, "")}`) ||
        // Other tools record the path that the program was started by.
        (/^[^/<]/.test(recorded) && name.endsWith(`/${recorded.replace(/^(?:\.\/)+/, "")}`)),
    );
}
