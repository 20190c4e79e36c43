/** Memory by source line as its document: `tidemark lines`. */
import { realpathSync } from "node:fs";
import type {
  FrameJson,
  LinesJson,
  SummaryJson,
  SummarySiteJson,
} from "../../model/documents/documents.js";
import type { Moment, Recording } from "../../recording/types.js";
import { addUp, splitStack } from "./site_groups.js";
import { summarize } from "./summary.js";

type LineRow = LinesJson["lines"][number];

/**
 * Attributes each site to a source line: the line of the user's own code that led to the allocation, or, with
 * `file`, the innermost line of that file. Rows are ordered by size; with `file`, by line number.
 * Throws TidemarkError (TM-E014) for a time outside the recording.
 */
export function linesDocument(
  recording: Recording,
  moment: Moment,
  file: string | undefined,
): LinesJson {
  const summary = summarize(recording, moment);
  return {
    schema: "tidemark.lines/1",
    target: summary.target,
    atMs: summary.atMs,
    lines: collectLines(summary, file),
    limits: summary.limits,
  };
}

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
  // Of the figure that is shown first; where nothing lives any more, of the peak.
  const shown = (site: SummarySiteJson) => (live.bytes > 0 ? site.liveBytes : site.liveBytesAtPeak);
  const python = sum((site) => (site.domain === "python" ? shown(site) : 0));
  const all = sum(shown);
  return {
    file: frame.file,
    line: frame.line,
    function: frame.function,
    liveBytes: live.bytes,
    liveBytesAtPeak: sum((site) => site.liveBytesAtPeak),
    allocatedBytes: sum((site) => site.allocatedBytes),
    pythonShare: all > 0 ? python / all : 0,
    standardErrorBytes: live.standardErrorBytes,
  };
}

/** Matches frames of a file that is named by its path, its real path, or whole components from its end. */
function fileMatcher(file: string): (frame: FrameJson) => boolean {
  const names = [file.replace(/^(?:\.\/)+/, "")];
  try {
    names.push(realpathSync(file));
  } catch {
    // Recorded on another machine: only the name decides.
  }
  return (frame) =>
    names.some((name) => frame.file === name || frame.file.endsWith(`/${name.replace(/^\//, "")}`));
}
