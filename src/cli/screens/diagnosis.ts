/** The verdict as text: one sentence, the evidence, the suspects, the advice. */

import { adviceExamples } from "../../diagnose/index.js";
import {
  formatBytes,
  formatDuration,
  formatExactCount,
  formatShare,
  formatSignedBytes,
} from "../../model/base/numbers.js";
import {
  type AdviceJson,
  CALM_KINDS,
  type DiagnosisJson,
  type SuspectJson,
} from "../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { holderPathText } from "../../model/documents/holder_path.js";
import { isOwn } from "../../model/documents/own_code.js";
import { shareBase } from "../../model/documents/share_base.js";
import { remainingEvidence, verdictText } from "../../model/documents/verdict_text.js";
import { oneLine } from "../../model/errors/errors.js";
import { bar, padEnd, type Screen } from "../text/output.js";
import { functionOf, placeOf } from "./sites.js";

export const DEFAULT_SUSPECTS = 3;
const MOST_EVIDENCE = 5;
const MOST_FRAMES = 8;
const LABEL_WIDTH = 11;
const BAR_WIDTH = 12;

/** Harmless verdicts are green, leaks red, and undecided ones yellow. */

export function printDiagnosis(
  screen: Screen,
  document: DiagnosisJson,
  options: {
    readonly leftOut: number;
    readonly unmatched: string | undefined;
    readonly quiet: boolean;
  },
): void {
  printVerdict(screen, document);
  if (options.quiet) {
    return;
  }
  screen.line();
  printEvidence(screen, document);
  for (const suspect of document.suspects) {
    screen.line();
    printSuspect(screen, document, suspect);
  }
  if (options.unmatched !== undefined) {
    screen.line();
    screen.line(screen.paint.dim(`  Suspects: ${options.unmatched}`));
  }
  if (options.leftOut > 0) {
    screen.line();
    screen.line(
      screen.paint.dim(
        `  ${options.leftOut} more ${options.leftOut === 1 ? "suspect" : "suspects"}: --top 0 shows all`,
      ),
    );
  }
  printAdvice(screen, document);
  printLimits(screen, document.limits);
}

/** Only the verdict, as printed at the end of `run`. */
export function printVerdict(
  screen: Screen,
  { verdict, growth, alsoFound = [] }: DiagnosisJson,
): void {
  const { paint } = screen;
  const colour = CALM_KINDS.has(verdict.kind)
    ? paint.green
    : verdict.kind === "insufficient-evidence"
      ? paint.yellow
      : paint.red;
  printLabelled(screen, "Verdict", verdictText(verdict), (text) => paint.bold(colour(text)));
  printLabelled(screen, "", verdict.summary);
  for (const { kind, share, summary } of alsoFound) {
    printLabelled(
      screen,
      "Also found",
      share < LEAST_SHARE
        ? `${kind}: ${summary}`
        : `${kind} (${formatShare(share)} of the growth): ${summary}`,
    );
  }
  if (growth.bytesPerStep !== undefined && growth.bytesPerStep > 0) {
    printLabelled(
      screen,
      "",
      `${formatSignedBytes(growth.bytesPerStep)} a step of the program's work.`,
    );
  }
}

/** Handles are listed however little memory they use. */
const LEAST_SHARE = 0.01;

/** The findings, leaks first; silent ones only if there are few others. */
function printEvidence(screen: Screen, document: DiagnosisJson): void {
  const order = { leak: 0, "no leak": 1, silent: 2 };
  const lines = remainingEvidence(document)
    .sort((a, b) => order[a.says] - order[b.says])
    .slice(0, MOST_EVIDENCE);
  for (const [index, { says, detail }] of lines.entries()) {
    const mark = says === "leak" ? "!" : says === "no leak" ? "=" : "·";
    printLabelled(screen, index === 0 ? "Evidence" : "", `${mark} ${detail}`);
  }
}

function printSuspect(screen: Screen, document: DiagnosisJson, suspect: SuspectJson): void {
  const { paint } = screen;
  const pid = placeInTree(document, suspect);
  const head = suspect.reads ? readingWords(suspect) : growthWords(document, suspect);
  printLabelled(screen, `Suspect ${suspect.rank}`, `${head}${pid}`, paint.bold);
  for (const [index, frame] of framesShown(suspect.stack).entries()) {
    const indent = "  ".repeat(Math.min(index, 4));
    const text =
      typeof frame === "string"
        ? paint.dim(frame)
        : `${oneLine(functionOf(frame))} ${paint.dim(oneLine(placeOf(frame)))}`;
    screen.line(`${padEnd("", LABEL_WIDTH)}${indent}${text}`);
  }
  if (suspect.holder) {
    const { path, entries, retainedBytes, atMs } = suspect.holder;
    const facts = [
      entries > 0 ? `${formatExactCount(entries)} entries` : "",
      retainedBytes > 0 ? `${formatBytes(retainedBytes)}${ofObjects(suspect)}` : "",
    ].filter((fact) => fact !== "");
    const when = facts.length > 0 ? countedBefore(document, atMs) : "";
    printLabelled(
      screen,
      "Held by",
      `${holderPathText(path)}${facts.length > 0 ? ` (${facts.join(", ")}${when})` : ""}`,
    );
  }
  if (!suspect.reads) {
    printAges(screen, suspect);
  }
}

/** The innermost frames, callers first. If the program's own frame is further out, it comes first, and those in between are left out. */
function framesShown(stack: readonly FrameJson[]): (FrameJson | string)[] {
  const own = stack.findIndex(isOwn);
  if (own < MOST_FRAMES) {
    return stack.slice(0, MOST_FRAMES).reverse();
  }
  const inner = stack.slice(0, MOST_FRAMES - 2);
  const leftOut = own - inner.length;
  const gap = `… ${leftOut} ${leftOut === 1 ? "frame" : "frames"} of libraries`;
  return [stack[own] as FrameJson, gap, ...inner.reverse()];
}

/** The size of an object leaves out what a library allocates for it. Where that is nearly all of the memory, the line adds that. */
function ofObjects({ domain, liveBytes, holder }: SuspectJson): string {
  const isOutside =
    domain === "native" && (holder?.retainedBytes ?? 0) < LITTLE_OF_NATIVE * liveBytes;
  return isOutside ? " without its native memory" : "";
}

const LITTLE_OF_NATIVE = 0.05;

/** A holder that is counted earlier than this share of the window before its end has grown since. */
const LONG_BEFORE_END = 0.05;

function countedBefore({ window }: DiagnosisJson, atMs = window.endMs): string {
  const before = window.endMs - atMs;
  return before > LONG_BEFORE_END * (window.endMs - window.startMs)
    ? `, counted ${formatDuration(before)} before the end`
    : "";
}

function placeInTree({ target }: DiagnosisJson, { pid, processes = [] }: SuspectJson): string {
  if (processes.length > 1) {
    return ` in ${processes.length} processes (most in ${processes[0]?.pid})`;
  }
  return pid === target.pid ? "" : ` in process ${pid}`;
}

function growthWords(document: DiagnosisJson, suspect: SuspectJson): string {
  if (suspect.atEnd) {
    return `${formatBytes(suspect.liveBytes)} live when memory ran out, ${formatShare(suspect.share)} of all live bytes at that time`;
  }
  const { growthBytesPerStep: step, growthBytesPerHour: hour } = suspect;
  const what = suspect.type === undefined ? "" : `${oneLine(suspect.type)} objects: `;
  const rate =
    step === undefined ? `${formatSignedBytes(hour)}/h` : `${formatSignedBytes(step)} a step`;
  const growth =
    (step ?? hour) <= 0
      ? "little memory"
      : suspect.puts
        ? `adds to the holder what other suspects allocate, ${rate}`
        : suspect.partOf !== undefined
          ? `${rate}, part of suspect ${suspect.partOf}`
          : `${rate}, ${formatShare(suspect.share)} of ${shareBase(document)}`;
  const live =
    suspect.liveBytes > 0 ? `, ${formatBytes(suspect.liveBytes)} ${stateOf(suspect)}` : "";
  return `${what}${growth}${live}`;
}

/** It keeps nothing, so its live bytes and ages are not shown. */
function readingWords({ share, growthBytesPerHour }: SuspectJson): string {
  return `reads objects created before the fork: ${formatShare(share)} of all reads, ${formatSignedBytes(growthBytesPerHour)}/h become private`;
}

/** Allocations are "live"; mappings are "mapped", whether or not their pages are resident. */
function stateOf({ domain }: SuspectJson): "live" | "mapped" {
  return domain === "files" ? "mapped" : "live";
}

/** Share of live bytes older than each age; the bars of a leak shrink evenly. */
function printAges(screen: Screen, suspect: SuspectJson): void {
  const most = suspect.ages[0]?.bytes ?? 0;
  const shown = suspect.ages.filter((_, i) => i % 2 === 0);
  for (const [index, age] of shown.entries()) {
    const share = most > 0 ? age.bytes / most : 0;
    const text = `${bar(share, BAR_WIDTH)}`;
    const when =
      age.olderThanMs === 0 ? stateOf(suspect) : `older than ${formatDuration(age.olderThanMs)}`;
    screen.line(
      `${screen.paint.dim(padEnd(index === 0 ? "Ages" : "", LABEL_WIDTH))}${padEnd(text, BAR_WIDTH)} ` +
        `${formatBytes(age.bytes)} ${screen.paint.dim(when)}`,
    );
  }
}

function printAdvice(screen: Screen, document: DiagnosisJson): void {
  const given = new Map<string, AdviceJson>();
  for (const advice of [...document.suspects.flatMap((s) => s.advice), ...document.advice]) {
    if (!given.has(advice.id)) {
      given.set(advice.id, advice);
    }
  }
  const examples = adviceExamples(document);
  for (const { id, text } of given.values()) {
    screen.line();
    printLabelled(screen, "Advice", `${text} (${id})`);
    const example = examples.find((one) => one.id === id);
    if (example !== undefined) {
      printLabelled(screen, "", example.intro, screen.paint.dim);
      printCode(screen, "-", example.before, screen.paint.red);
      printCode(screen, "+", example.after, screen.paint.green);
    }
  }
}

function printCode(
  screen: Screen,
  mark: string,
  code: string,
  painter: (text: string) => string,
): void {
  for (const line of code.split("\n")) {
    screen.line(`${padEnd("", LABEL_WIDTH)}${painter(`${mark} ${line}`)}`);
  }
}

function printLimits(screen: Screen, limits: readonly string[]): void {
  if (limits.length === 0) {
    return;
  }
  screen.line();
  for (const [index, limit] of limits.entries()) {
    printLabelled(screen, index === 0 ? "Not seen" : "", limit, screen.paint.yellow);
  }
}

function printLabelled(
  screen: Screen,
  name: string,
  text: string,
  painter: (text: string) => string = (plain) => plain,
): void {
  for (const [index, line] of screen.wrap(oneLine(text), LABEL_WIDTH).entries()) {
    screen.line(
      `${screen.paint.dim(padEnd(index === 0 ? name : "", LABEL_WIDTH))}${painter(line)}`,
    );
  }
}
