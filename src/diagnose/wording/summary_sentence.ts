import {
  formatBytesBriefly,
  formatCount,
  formatDurationBriefly,
  formatSlopeBriefly,
} from "../../model/base/numbers.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type {
  DiagnosisJson,
  SuspectJson,
  VerdictKind,
} from "../../model/documents/diagnosis_document.js";
import type { LedgerPartName } from "../../model/profile/ledger.js";
import { ledgerMetric } from "../../model/profile/series.js";
import { growingChildren, whichChildrenGrow } from "../causes/growing_children.js";
import { growingHandles, mostOfOne } from "../causes/growing_handles.js";
import type { Evidence } from "../evidence/evidence.js";
import type { Observations, ProcessObservation } from "../evidence/observations.js";
import { levelBeforeEnd, measureName } from "../series/total_growth.js";
import { headlineOf } from "../sites/headline_frame.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { fillingParts, holderName } from "./filling_cache.js";
import { isBehindOneObject, nameOf } from "./holder_name.js";
import { mayBeCleared } from "./window_needed.js";
import { frameText } from "./words.js";

const MS_PER_HOUR = 3_600_000;
/** Verdict kinds whose growth equals what the accused sites keep. */
const KEPT_BY_SITES = new Set<VerdictKind>([
  "python-leak",
  "native-leak",
  "graph-retention",
  "cycle-garbage",
]);
/** Of these, what a program may still need; it cannot reach garbage, and native memory has no holder. */
const MAY_BE_NEEDED = new Set<VerdictKind>(["python-leak", "graph-retention"]);
/** If the suspects cause less than this share of the growth, their own rate is shown next to the program's. */
const MOST_OF_GROWTH = 0.6;

/** Verdict kinds about things that are created rather than allocated. */
const CREATED = new Set<VerdictKind>(["handle-leak", "file-growth", "shm-growth"]);

/** Begins the sentence of a diagnosis without a verdict. */
export const NOT_ENOUGH = "There is not enough evidence for a verdict";

const WHAT: Readonly<Record<VerdictKind, string>> = {
  steady: "Memory is steady",
  "warm-up": "Memory grew at the start and has been flat since (a warm-up)",
  "cache-plateau": "A cache filled up",
  "python-leak": "Python objects accumulate",
  "cycle-garbage": "Unreachable reference cycles wait for the garbage collector",
  "native-leak": "Native memory is never freed",
  "graph-retention": "Tensors are kept together with their autograd graphs",
  "allocator-retention": "The program frees its memory, but the allocator keeps it",
  "file-growth": "Mapped files accumulate",
  "shm-growth": "Shared memory accumulates",
  "child-growth": "Worker processes grow",
  "copy-on-write": "Memory shared by a fork becomes private in the child processes",
  "gpu-leak": "Device memory accumulates",
  "gpu-fragmentation": "Device memory is fragmented",
  "gpu-contention": "Another process uses the device's memory",
  "gpu-capacity": "The job needs more memory than the device has",
  "handle-leak": "Open files, sockets or threads are never released",
  "out-of-memory": "The process ran out of memory",
  "insufficient-evidence": NOT_ENOUGH,
};

/** The meaning of a device verdict, followed by the rule's own sentence. */
export function deviceSummary(kind: VerdictKind, detail: string): string {
  const follows = /^[A-Z][a-z ]/.test(detail) ? detail[0]?.toLowerCase() + detail.slice(1) : detail;
  return `${WHAT[kind]}: ${follows}`;
}

/** Which evidence is missing, in the words of the rule that asks for more. */
export function insufficientSummary(detail: string): string {
  return `${WHAT["insufficient-evidence"]}. ${detail}`;
}

/** One of several causes: its kind, its site and its growth rate. */
export function causeSentence(
  kind: VerdictKind,
  suspects: readonly SiteJudgement[],
  slope: number,
  observations: Observations,
): string {
  const [first] = [...suspects].sort((a, b) => b.slope - a.slope);
  const what =
    kind === "cache-plateau" ? "A cache is filling up to its bound" : whatGrows(kind, observations);
  const where = first === undefined ? "" : `${originOf(kind, first)}; `;
  // Handles may use too little memory to state a rate.
  const rate = slope > 0 ? formatSlopeBriefly(slope) : "";
  return `${[what, `${where}${rate}`.replace(/; $/, "")].filter((part) => part !== "").join(": ")}.`;
}

/** The verdict in one sentence: kind, site, holder, growth rate and time to the limit. */
export function summaryOf(
  kind: VerdictKind,
  observations: Observations,
  growth: DiagnosisJson["growth"],
  accused: readonly SiteJudgement[],
  suspects: readonly SuspectJson[],
): string {
  const { bounded, evidence } = observations;
  const [first] = accused;
  const parts = [whatGrows(kind, observations)];
  const [filling] = bounded;
  if (kind === "cache-plateau" && filling && filling.holder.entries < filling.bound) {
    parts[0] = "A cache is filling up to its bound";
    parts.push(...fillingParts(filling, observations, growth));
  } else if (first?.backlog) {
    parts[0] = "A backlog grows: items arrive faster than they are consumed";
    parts.push(originOf(kind, first));
    const { holder } = suspects[0] ?? {};
    if (holder) {
      parts.push(`waiting in ${holderName(holder)}`);
    }
    const { producedSlope, consumedSlope, waitingMs } = first.backlog;
    parts.push(
      `${formatSlopeBriefly(producedSlope)} in, ${formatSlopeBriefly(consumedSlope)} out, the oldest has waited ${formatDurationBriefly(waitingMs)}`,
    );
  } else if (first) {
    const isRun = runInThreads(kind, first, observations);
    parts.push(
      isRun ? `most of them run ${frameText(headlineOf(first.site))}` : originOf(kind, first),
    );
    const [suspect] = suspects;
    if (suspect?.holder && kind === "python-leak" && isBehindOneObject(suspect.holder, suspect)) {
      parts[0] = `Memory that a library keeps for one ${suspect.holder.type} object grows`;
      parts.push(`${holderName(suspect.holder)} keeps it`);
    } else if (suspect?.holder && !isRun) {
      parts.push(`${holderName(suspect.holder)} holds them${addedText(first, suspect)}`);
    }
    if (growth.bytesPerHour > 0) {
      parts.push(rateOf(kind, accused, suspects, growth));
    }
  } else if (kind === "handle-leak") {
    parts.push(...numberText(observations, growth));
  } else if (growth.bytesPerHour > 0 && !HARMLESS.has(kind)) {
    parts.push(`${formatBytesBriefly(growth.bytesPerHour)}/h`);
  } else {
    parts.push(levelText(observations));
  }
  if (growth.msToLimit > 0) {
    parts.push(
      `the limit of ${formatBytesBriefly(growth.limitBytes)} is reached in ${formatDurationBriefly(growth.msToLimit)}`,
    );
  }
  const isKept = MAY_BE_NEEDED.has(kind) && evidence.isComplete === true;
  return `${parts[0]}: ${parts.slice(1).join("; ")}.${isKept ? OR_NEEDED : ""}${orCleared(kind, observations, suspects[0])}`;
}

/** Where no site keeps the memory of handles: how many there are, and memory that they do not explain. */
function numberText(observations: Observations, growth: DiagnosisJson["growth"]): string[] {
  const found = growingHandles(observations);
  if (found === null) {
    return [levelText(observations)];
  }
  const { slope, level } = found.growth;
  const anHour = slope * MS_PER_HOUR;
  const isUnexplained = growth.bytesPerHour > mostOfOne(found.name) * anHour;
  return [
    `${formatCount(Math.round(level))} now, ${formatCount(Math.round(anHour / 60))} more a minute`,
    ...(isUnexplained
      ? [`memory grows by ${formatBytesBriefly(growth.bytesPerHour)}/h, more than these explain`]
      : []),
  ];
}

/** A container that the code clears at some size looks like a leak until it has reached that size. */
function orCleared(kind: VerdictKind, observations: Observations, suspect?: SuspectJson): string {
  const name = (suspect?.holder && nameOf(suspect.holder)) ?? "that container";
  return mayBeCleared(kind, observations, suspect)
    ? ` If the code clears ${name} at a size that it did not reach within ${formatDurationBriefly(observations.windowMs)}, it is a cache, and no leak: watch it for longer.`
    : "";
}

/** A job that collects its results looks like a leak until it has written them. */
const OR_NEEDED =
  " The program ended by itself: if it needs all of this until its end, this is its working set, and no leak.";

/** The line that adds the objects, if it is not the one that allocated them, or no allocation of them was sampled. */
function addedText({ site }: SiteJudgement, { puts, stack: [frame] }: SuspectJson): string {
  const isAdded = puts || (site.keptStacks.length === 0 && frame !== undefined);
  return isAdded ? `, added by ${frameText(frame)}` : "";
}

/** The kind in words, with the processes or handles that it is about where they are known. */
function whatGrows(kind: VerdictKind, observations: Observations): string {
  const handles = kind === "handle-leak" ? growingHandles(observations)?.name : undefined;
  if (handles === "threads") {
    return "Threads accumulate and do not end";
  }
  if (handles === "unwaited children") {
    return "Child processes that have ended accumulate, because nothing waits for them (zombies)";
  }
  if (handles !== undefined) {
    return `${handles.replace("open", "Open")} are never closed`;
  }
  return kind === "child-growth" ? whichChildrenGrow(growingChildren(observations)) : WHAT[kind];
}

/** Bytes an hour of the suspects that another container holds than the first one's. */
function heldElsewhere([first, ...others]: readonly SuspectJson[]): number {
  const path = first?.holder?.path ?? [];
  const isApart = ({ holder }: SuspectJson) =>
    path.length > 0 &&
    holder !== undefined &&
    holder.path.slice(0, path.length).some((step, n) => step !== path[n]);
  return others
    .filter((one) => isApart(one))
    .reduce((sum, { growthBytesPerHour }) => sum + growthBytesPerHour, 0);
}

/** The growth rate of the accused sites, with their measure if it is not that of the header, or followed by the rate of the whole program if that is much higher. */
function rateOf(
  kind: VerdictKind,
  accused: readonly SiteJudgement[],
  suspects: readonly SuspectJson[],
  { bytesPerHour, ofLiveBytes }: DiagnosisJson["growth"],
): string {
  if (ofLiveBytes) {
    return `live bytes grow by ${formatBytesBriefly(bytesPerHour)}/h`;
  }
  const all = accused.reduce((sum, { slope }) => sum + slope, 0);
  const own = all - heldElsewhere(suspects) / MS_PER_HOUR;
  const whole = `${formatBytesBriefly(bytesPerHour)}/h`;
  return KEPT_BY_SITES.has(kind) && own > 0 && own * MS_PER_HOUR < MOST_OF_GROWTH * bytesPerHour
    ? `${formatSlopeBriefly(own)}, out of ${whole} for the whole program`
    : whole;
}

/** "15 MiB resident after 60 s", as the header shows it; "30 MiB PSS in 4 processes after 60 s". */
export function levelText({ evidence, target, total, windowMs }: Observations): string {
  const { end } = total;
  const after = `after ${formatDurationBriefly(windowMs)}`;
  if (evidence.selection !== undefined) {
    return `${formatBytesBriefly(liveBytes(evidence))} live ${after}`;
  }
  const processes = runningAtEnd(evidence);
  const count = processes === 1 ? "" : ` in ${processes} processes`;
  const before = levelBeforeEnd(total);
  if (before !== null) {
    return `${formatBytesBriefly(before)} ${measureName(end)}, and ${formatBytesBriefly(end.bytes)} at the end${count}, ${after}`;
  }
  return `${formatBytesBriefly(end.bytes)} ${measureName(end)}${count} ${after}${freeText(target, end.bytes)}`;
}

/** Free memory in the allocators that is worth a clause: bytes, and share of the resident memory. */
const MUCH_FREE_BYTES: Bytes = 20_000_000;
const MUCH_FREE_SHARE = 0.5;

/** ", 108 MiB of it free inside Python's allocator": memory that the program no longer uses; "" if it is less than half. */
function freeText(target: ProcessObservation, residentBytes: Bytes): string {
  const last = (part: LedgerPartName) => target.readings(ledgerMetric(part)).values.at(-1) ?? 0;
  const [python, malloc] = [last("python.free"), last("malloc.free")];
  const free = python + malloc;
  if (free < Math.max(MUCH_FREE_BYTES, MUCH_FREE_SHARE * residentBytes)) {
    return "";
  }
  const mostIn = (bytes: Bytes) => bytes >= MOST_OF_FREE * free;
  const where = mostIn(python)
    ? "Python's allocator"
    : mostIn(malloc)
      ? "malloc"
      : "Python's allocator and malloc";
  const shown = mostIn(python) ? python : mostIn(malloc) ? malloc : free;
  return `, ${formatBytesBriefly(shown)} of it free inside ${where}, which keeps it`;
}

const MOST_OF_FREE = 0.9;

/** A recording ends a little after its program. */
const END_MS: Millis = 1000;

/** Number of processes that ran until the end of the window; at least 1. */
function runningAtEnd({ processes, window }: Evidence): number {
  const running = processes.filter(
    ({ endedMs }) => endedMs === null || endedMs >= window.endMs - END_MS,
  );
  return Math.max(1, running.length);
}

function liveBytes({ sites }: Evidence): Bytes {
  return (sites?.sites ?? []).reduce((sum, site) => sum + (site.liveBytes.at(-1) ?? 0), 0);
}

/** Whether threads accumulate, and what they allocate themselves is accused, not their creation. */
function runInThreads(kind: VerdictKind, { site }: SiteJudgement, observations: Observations) {
  return (
    kind === "handle-leak" &&
    growingHandles(observations)?.name === "threads" &&
    site.keptStacks[0]?.frames.some((frame) => /^Thread\._bootstrap/.test(frame.function)) === true
  );
}

function originOf(kind: VerdictKind, { site }: SiteJudgement): string {
  const made = site.keptStacks.length > 0 ? frameText(headlineOf(site)) : "";
  if (kind === "allocator-retention" && made !== "") {
    return `objects that ${made} keeps lie between freed blocks`;
  }
  if (kind === "copy-on-write" && made !== "") {
    return `mostly objects that ${made} created before the fork`;
  }
  return site.type === undefined
    ? `${CREATED.has(kind) ? "created" : "allocated"} by ${frameText(headlineOf(site))}`
    : `mostly ${site.type} objects${made === "" ? "" : `, created by ${made}`}`;
}

const HARMLESS = new Set<VerdictKind>([
  "steady",
  "warm-up",
  "cache-plateau",
  "insufficient-evidence",
]);
