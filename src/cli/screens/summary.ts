/** The screen at the end of `run`, and of `summary`. */

import { basename, relative } from "node:path";
import { addUp, type Estimate, groupSites } from "../../inspect/index.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowthInterval,
  GROWTH_DOUBTS,
} from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { type ImportedFigure, isUnknown, precisionText } from "../../model/profile/imported.js";
import { peakTimeText } from "../../model/profile/peak_time.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { formatTable, padEnd, type Screen, sparkline, widthOf } from "../text/output.js";
import { printRowGroups } from "./row_groups.js";
import { momentPhrase, printSites } from "./site_ranking.js";
import { printSteps } from "./steps.js";

/** What the screen shows in addition to the document. */
export interface SummaryContext {
  readonly summary: SummaryJson;
  /** "end", "peak", or the moment as the user wrote it. */
  readonly moment: string;
  /** RSS of the whole tree over time. */
  readonly rss: { readonly timesMs: ArrayLike<number>; readonly bytes: ArrayLike<number> };
  /** "exit code 0", "killed by SIGKILL"; "" unknown or still running. */
  readonly ending: string;
  readonly recorderCpuMs: Millis | null;
  /** Path of the recording, for use in the next command. */
  readonly recordingPath: string;
  readonly recordingBytes: number;
}

const DEFAULT_PROCESSES = 8;
const LABEL_WIDTH = 11;
const SHOWN_PARTS = 4;
const MUCH_MAPPED_BYTES = 32 << 20;

export function printSummary(
  screen: Screen,
  context: SummaryContext,
  options: ListOptions & { readonly quiet?: boolean },
): void {
  const { summary } = context;
  printHead(screen, context);
  for (const { sentence } of summary.memoryEnds ?? []) {
    printLabelled(screen, "Ended", sentence, screen.paint.red);
  }
  screen.line();
  if (summary.where !== undefined) {
    const text = `${oneLine(summary.where)}: live and allocated bytes, sites and verdict cover only this selection; all other figures cover the whole program`;
    printLabelled(screen, "Only", text, screen.paint.yellow);
  }
  printFigures(screen, context);
  const groups = groupSites(summary.sites);
  if (summary.steps !== undefined) {
    printSteps(screen, summary.steps, momentPhrase(context.moment), options);
  } else if (summary.by !== undefined && summary.groups !== undefined) {
    const when = momentPhrase(context.moment);
    const { by, groups, imported } = summary;
    printRowGroups(screen, { by, groups, when, imported }, options);
  } else if (groups.length > 0) {
    printSites(screen, { moment: context.moment, imported: summary.imported }, groups, options);
  }
  if (summary.processes.length > 1) {
    printProcesses(screen, summary, options);
  }
  screen.line();
  printPrecision(screen, context);
  if (options.quiet !== true) {
    printNext(screen, context);
  }
}

function printHead(screen: Screen, { summary, ending }: SummaryContext): void {
  const { paint } = screen;
  const named = commandText(summary.target.command);
  const command = oneLine(
    summary.target.command.length === 0 ? (summary.imported?.file ?? named) : named,
    Number.POSITIVE_INFINITY,
  );
  const facts = [
    ending,
    isUnknown(summary.imported, "time")
      ? ""
      : formatDuration(summary.window.endMs - summary.window.startMs),
    summary.target.python === "" ? "" : `Python ${oneLine(summary.target.python)}`,
    summary.processes.length > 1 ? `${summary.processes.length} processes` : "",
  ].filter((fact) => fact !== "");
  screen.line(
    `${paint.cyan(paint.bold("tidemark"))}  ${paint.bold(screen.cutEnd(command, screen.columns - 10))}`,
  );
  if (facts.length > 0) {
    screen.line(`          ${paint.dim(facts.join(" · "))}`);
  }
}

/** Omitted for a run that is too short. */
function printGrowth(screen: Screen, { series, pss }: SummaryJson): void {
  const measure = pss === undefined ? "" : "PSS ";
  const { growthLowBytesPerHour: low, growthHighBytesPerHour: high } = series;
  const doubt = series.growthDoubt === undefined ? "" : `, ${GROWTH_DOUBTS[series.growthDoubt]}`;
  if (low !== undefined && high !== undefined) {
    const growth = formatGrowthInterval(series.growthBytesPerHour, low, high);
    const of = series.growthOfRss === true && growth !== "none" ? " of the sum of RSS" : "";
    printFacts(screen, "Growth", [
      `${growth}${of}${doubt}`,
      `${measure}minimum ${formatBytes(series.minBytes)}`,
      `${measure}baseline ${formatBytes(series.baselineBytes)}`,
    ]);
  }
}

function printFigures(screen: Screen, context: SummaryContext): void {
  const { summary } = context;
  const since = (timeMs: TimeMs) => formatDuration(Math.max(0, timeMs - summary.window.startMs));
  const unknown = (figure: ImportedFigure) => isUnknown(summary.imported, figure);
  const endText = ({ endBytes, endMs }: SummaryJson["rss"] | NonNullable<SummaryJson["pss"]>) =>
    `end ${formatBytes(endBytes)}${endMs === undefined ? "" : ` at ${since(endMs)}`}`;
  const rss =
    summary.rss.peakBytes === 0
      ? [screen.paint.dim(unknown("rss") ? "unknown" : "not recorded")]
      : [
          `peak ${formatBytes(summary.rss.peakBytes)} ${peakTimeText(summary.rss, summary.window.startMs, since)}`,
          endText(summary.rss),
        ];
  if (summary.pss) {
    const { peakBytes, peakMs } = summary.pss;
    printFacts(
      screen,
      "PSS",
      [
        `peak ${formatBytes(peakBytes)} at ${since(peakMs)}`,
        endText(summary.pss),
        `sum of RSS ${formatBytes(summary.rss.peakBytes)}`,
      ],
      context,
    );
  } else {
    printFacts(screen, "RSS", rss, unknown("rss") ? undefined : context);
  }
  printGrowth(screen, summary);
  printLedgerParts(screen, context);
  if (summary.agent.samples === 0 && summary.sites.length === 0) {
    const none = summary.imported === undefined ? "no allocation was sampled" : "no allocation";
    const text = unknown("live") ? "unknown" : none;
    screen.line(label(screen, "Live") + screen.paint.dim(text));
    return;
  }
  const live = addUp(summary.sites, (site) => [site.liveBytes, site.standardErrorBytes]);
  const atPeak = addUp(summary.sites, (site) => [
    site.liveBytesAtPeak,
    site.standardErrorAtPeakBytes,
  ]);
  const allocated = addUp(summary.sites, (site) => [
    site.allocatedBytes,
    site.standardErrorAllocatedBytes,
  ]);
  const when = summary.livePeakMs === undefined ? "" : ` at ${since(summary.livePeakMs)}`;
  const amount = (figure: ImportedFigure, estimate: Estimate) =>
    unknown(figure) ? "unknown" : withError(estimate);
  const now = `${context.moment === "end" ? "end" : `at ${context.moment}`} ${amount("live", live)}`;
  printFacts(screen, "Live", [
    unknown("peak") ? "peak unknown" : `peak ${withError(atPeak)}${unknown("time") ? "" : when}`,
    ...(context.moment === "peak" ? [] : [now]),
  ]);
  printMapped(screen, summary);
  printFacts(screen, "Allocated", [
    unknown("allocated") ? "unknown" : `${withError(allocated)} in all`,
    ...(unknown("allocated") || unknown("time")
      ? []
      : [`${formatBytes(summary.agent.allocatedBytesPerSecond)}/s`]),
  ]);
  const { copied } = summary;
  if (copied !== undefined) {
    const estimate = { bytes: copied.bytes, standardErrorBytes: copied.standardErrorBytes };
    printFacts(screen, "Copied", [`${withError(estimate)} by memcpy and memmove`]);
  }
}

/** The largest parts of RSS in the last ledger. */
function printLedgerParts(
  screen: Screen,
  { summary: { ledger, window, processes } }: SummaryContext,
): void {
  if (ledger === undefined) {
    return;
  }
  const parts = ledger.parts.filter(({ bytes }) => bytes > 0).sort((a, b) => b.bytes - a.bytes);
  const words = parts
    .slice(0, SHOWN_PARTS)
    .map(({ part, bytes }) => `${part} ${formatBytes(bytes)}`);
  const at = formatDuration(Math.max(0, ledger.atMs - window.startMs));
  const of =
    processes.length > ledger.processes
      ? `, of ${ledger.processes} of the ${processes.length} processes`
      : "";
  printLabelled(screen, "By part", `${words.join(" · ")} at ${at}${of}`);
}

/**
 * A mapping is live from the call on, but becomes resident only as it is written. The remaining RSS in the
 * ledger is an upper bound of its resident part. Shown if most of the mapped bytes are not resident, because
 * sites of mappings then look larger than they are.
 */
function printMapped(screen: Screen, { sites, ledger, window }: SummaryJson): void {
  const mapped = sites
    .filter(({ domain }) => domain === "mapped")
    .reduce((sum, { liveBytes }) => sum + liveBytes, 0);
  const resident = (ledger?.parts ?? [])
    .filter(({ part }) => part === "anon.other" || part === "shm")
    .reduce((sum, { bytes }) => sum + bytes, 0);
  if (ledger === undefined || mapped < MUCH_MAPPED_BYTES || resident > mapped / 2) {
    return;
  }
  const at = formatDuration(Math.max(0, ledger.atMs - window.startMs));
  const text = `${formatBytes(mapped)} of it is mapped, of which at most ${formatBytes(resident)} are resident, at ${at}`;
  printLabelled(screen, "", text, screen.paint.dim);
}

/** Facts side by side if they fit, otherwise one below the other; RSS is followed by its sparkline. */
function printFacts(
  screen: Screen,
  name: string,
  facts: readonly string[],
  course?: SummaryContext,
): void {
  const room = screen.columns - LABEL_WIDTH;
  const joined = facts.join(" · ");
  const lines = widthOf(joined) <= room ? [joined] : facts;
  for (const [index, line] of lines.entries()) {
    const width = Math.min(40, room - widthOf(line) - 3);
    const drawn =
      course !== undefined && index === 0 && width >= 8
        ? sparkline(course.rss.timesMs, course.rss.bytes, width)
        : "";
    const strong = line.replace(/^peak [\d.]+ \w+/, (text) => screen.paint.bold(text));
    screen.line(`${label(screen, index === 0 ? name : "")}${strong}   ${screen.paint.blue(drawn)}`);
  }
}

function printProcesses(screen: Screen, summary: SummaryJson, options: ListOptions): void {
  const measured = summary.processes.filter(({ peakRssBytes }) => peakRssBytes !== null);
  // Without a recorder, as in an imported pool, no process was measured.
  const listed = measured.length > 0 ? measured : summary.processes;
  const brief = summary.processes.length - listed.length;
  const peakOf = ({ peakRssBytes }: (typeof listed)[number]) => peakRssBytes ?? 0;
  const { rows, leftOut, unmatched } = selectRows(
    listed.toSorted((a, b) => peakOf(b) - peakOf(a)),
    options,
    DEFAULT_PROCESSES,
    peakOf,
    (row) => `${row.pid} ${row.command.join(" ")}`,
  );
  const table = formatTable(
    screen,
    [
      { title: "PEAK RSS", align: "right", paint: screen.paint.bold },
      { title: "END", align: "right" },
      { title: "PID", align: "right" },
      { title: "PYTHON" },
      { title: "COMMAND", flexible: "cutEnd" },
    ],
    rows.map((row) => [
      row.peakRssBytes === null ? "-" : formatBytes(row.peakRssBytes),
      row.endRssBytes ? formatBytes(row.endRssBytes) : row.peakRssBytes === null ? "-" : "ended",
      String(row.pid),
      row.python === "" ? "-" : row.python,
      `${row.profiled ? "" : "(without agent) "}${commandText(row.command)}`,
    ]),
  );
  const remarks = [
    leftOut > 0 ? `${formatCount(leftOut)} more` : "",
    brief > 0 ? `${formatCount(brief)} too short to be measured` : "",
  ].filter((remark) => remark !== "");
  screen.line();
  screen.line(
    `${screen.paint.bold("Processes")}  ${screen.paint.dim(`${formatCount(summary.processes.length)} in all`)}`,
  );
  for (const line of unmatched === undefined ? table : [screen.paint.dim(`  ${unmatched}`)]) {
    screen.line(line);
  }
  if (remarks.length > 0) {
    screen.line(screen.paint.dim(`  ${remarks.join(", ")}`));
  }
}

/** A command with only its program's name, because the directory says little and takes space. */
export function commandText(command: readonly string[]): string {
  const [program = "", ...rest] = command;
  return [basename(program), ...rest].map(shellWord).join(" ");
}

function printPrecision(screen: Screen, { summary, recorderCpuMs }: SummaryContext): void {
  const { agent } = summary;
  if (agent.samples > 0) {
    const lost = agent.lost > 0 ? `, ${formatCount(agent.lost)} lost` : "";
    const unseen =
      agent.unseenUpToBytes === undefined
        ? ""
        : ` · a site without samples holds less than ${formatBytes(agent.unseenUpToBytes)} (95 %)`;
    const cost = recorderCpuMs === null ? "" : ` · recorder ${formatDuration(recorderCpuMs)}`;
    printLabelled(
      screen,
      "Precision",
      `${periodText(agent)}, ${formatCount(agent.samples)} taken${lost} · ` +
        `± is one standard error${unseen} · CPU: agent ${formatDuration(agent.cpuMs)}${cost}`,
    );
  }
  if (summary.imported !== undefined && summary.sites.length > 0) {
    printLabelled(screen, "Precision", precisionText(summary.imported));
  }
  for (const [index, limit] of summary.limits.entries()) {
    printLabelled(screen, index === 0 ? "Not seen" : "", oneLine(limit), screen.paint.yellow);
  }
}

/** The current period, and the longest one if the agent had to save time. Large blocks and sizes that stay have finer ones. */
function periodText({ periodBytes, coarsestPeriodBytes = 0 }: SummaryJson["agent"]): string {
  if (periodBytes === 1 && coarsestPeriodBytes <= 1) {
    return "every allocation";
  }
  return coarsestPeriodBytes > periodBytes
    ? `at least one sample every ${formatBytes(periodBytes)} (every ${formatBytes(coarsestPeriodBytes)} during fast allocation)`
    : `one sample every ${formatBytes(periodBytes)}`;
}

function printNext(screen: Screen, context: SummaryContext): void {
  const here = relative(process.cwd(), context.recordingPath);
  const path = oneLine(
    shellWord(here.startsWith("..") ? context.recordingPath : here),
    Number.POSITIVE_INFINITY,
  );
  // A path that users copy is never cut; the line wraps instead.
  screen.line(
    `${label(screen, "Recording")}${path} ${screen.paint.dim(`(${formatBytes(context.recordingBytes)})`)}`,
  );
  screen.line(`${label(screen, "Next")}${screen.paint.cyan(`tidemark report ${path}`)}`);
}

function printLabelled(
  screen: Screen,
  name: string,
  text: string,
  painter: (text: string) => string = (plain) => plain,
): void {
  for (const [index, line] of screen.wrap(text, LABEL_WIDTH).entries()) {
    screen.line(`${label(screen, index === 0 ? name : "")}${painter(line)}`);
  }
}

function label(screen: Screen, name: string): string {
  return screen.paint.dim(padEnd(name, LABEL_WIDTH));
}

function withError(figure: Estimate): string {
  return figure.standardErrorBytes > 0
    ? `${formatBytes(figure.bytes)} ±${formatBytes(figure.standardErrorBytes)}`
    : formatBytes(figure.bytes);
}
