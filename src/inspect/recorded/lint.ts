/** Leak patterns in Python source as their document, ranked by what a recording measured: `tidemark lint`. */
import { existsSync, realpathSync } from "node:fs";
import {
  baselineText,
  beyondBaseline,
  type LintRequest,
  type LintRun,
  lintPaths,
  RULES,
  settingsAbove,
} from "../../lint/index.js";
import type { SummarySiteJson } from "../../model/documents/documents.js";
import type { LintFindingJson, LintJson } from "../../model/documents/lint_document.js";
import type { Recording } from "../../recording/types.js";
import { summarize } from "./summary.js";

export interface LintAnswer {
  readonly document: LintJson;
  /** How many fixes were written. */
  readonly fixed: number;
  /** A path that was named could not be checked. */
  readonly isIncomplete: boolean;
  /** From pyproject.toml; undefined if it sets none. */
  readonly failOn?: string;
}

export interface LintQuestion extends LintRequest {
  /** Ranks the findings. */
  readonly recording?: Recording;
  /** A baseline is about to be written, so that of the settings does not apply. */
  readonly acceptsAll?: true;
}

/**
 * The findings below some paths. `[tool.tidemark.lint]` provides what the command line does not set. Throws TM-E002.
 *
 */
export async function lintDocument(question: LintQuestion): Promise<LintAnswer> {
  const { exclude: settingsExclude = [], ...settings } = settingsAbove(firstPath(question.paths));
  const request = { ...settings, settingsExclude, ...question };
  const run = await lintPaths({
    ...request,
    ignore: [...(settings.ignore ?? []), ...(question.ignore ?? [])],
  });
  const measured =
    question.recording === undefined ? run.document.findings : ranked(run, question.recording);
  const findings =
    request.baseline === undefined || question.acceptsAll === true
      ? measured
      : beyondBaseline(measured, request.baseline);
  const baselined = measured.length - findings.length;
  return {
    document: { ...run.document, findings, baselined },
    fixed: run.fixed,
    isIncomplete: run.isIncomplete,
    ...(settings.failOn === undefined ? {} : { failOn: settings.failOn }),
  };
}

/** The text of a baseline that accepts these findings, for a file at `path`. */
export function lintBaseline(document: LintJson, path: string): string {
  return baselineText(document.findings, path);
}

/** All rules with descriptions, in the order of their ids. */
export function lintRules() {
  return RULES.map(({ id, name, severity, finds, why }) => ({ id, name, severity, finds, why }));
}

function firstPath(paths: readonly string[]): string {
  const [first = "."] = paths;
  return existsSync(first) ? first : ".";
}

/**
 * By live bytes at the lines of a finding, largest first; findings without a measurement come last, in the order of
 * files.
 */
function ranked({ document, functions }: LintRun, recording: Recording): LintFindingJson[] {
  const { sites } = summarize(recording, "end", {});
  const byFile = sitesByFile(sites);
  const findings = document.findings.map((finding, at) => {
    const lines = byFile.get(realPath(finding.file)) ?? byEnd(byFile, finding.file);
    const around = functions[at];
    const exact = measure(lines, finding.line, finding.endLine);
    const whole = around ? measure(lines, around.line, around.endLine) : exact;
    const measured = isMost(exact, whole)
      ? { where: "line" as const, ...exact }
      : { where: "function" as const, ...whole };
    return { ...finding, measured };
  });
  const size = ({ measured }: (typeof findings)[number]) => measured.liveBytes;
  return findings.sort(
    (a, b) => size(b) - size(a) || b.measured.liveBytesAtPeak - a.measured.liveBytesAtPeak,
  );
}

/** A line that stores objects from the lines above allocates almost nothing itself, so the whole function counts. */
function isMost(line: Measure, around: Measure): boolean {
  return (
    line.liveBytes >= SMALLEST_SHARE * around.liveBytes &&
    (line.allocatedBytes > 0 || around.allocatedBytes === 0)
  );
}

const SMALLEST_SHARE = 0.1;

type Measure = ReturnType<typeof measure>;
type SitesOfLine = Map<number, Set<SummarySiteJson>>;

/** For each file and line, the sites whose stacks go through it. */
function sitesByFile(sites: readonly SummarySiteJson[]): Map<string, SitesOfLine> {
  const files = new Map<string, SitesOfLine>();
  for (const site of sites) {
    for (const { file, line, kind } of site.stack) {
      if (kind !== "python") {
        continue;
      }
      const lines = files.get(file) ?? new Map<number, Set<SummarySiteJson>>();
      files.set(file, lines);
      lines.set(line, (lines.get(line) ?? new Set()).add(site));
    }
  }
  return files;
}

function measure(lines: SitesOfLine | undefined, from: number, to: number) {
  const sites = new Set<SummarySiteJson>();
  for (const [line, ofLine] of lines ?? []) {
    if (line >= from && line <= to) {
      for (const site of ofLine) {
        sites.add(site);
      }
    }
  }
  const sum = (figure: (site: SummarySiteJson) => number) =>
    [...sites].reduce((total, site) => total + figure(site), 0);
  return {
    liveBytes: sum((site) => site.liveBytes),
    liveBytesAtPeak: sum((site) => site.liveBytesAtPeak),
    allocatedBytes: sum((site) => site.allocatedBytes),
  };
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** A recording from another machine has other folders, so whole components are compared from the end. */
function byEnd(files: ReadonlyMap<string, SitesOfLine>, path: string): SitesOfLine | undefined {
  const end = `/${path.replace(/^(?:\.\.?\/)+/, "")}`;
  const found = [...files].filter(([file]) => file.endsWith(end));
  return found.length === 1 ? found[0]?.[1] : undefined;
}
