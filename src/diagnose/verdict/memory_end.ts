/**
 * A process that ran out of memory gets a verdict about what used its memory at the end, never a harmless one
 * and never a request for a longer window. A leak that the rules found remains the verdict if it holds a large
 * share of that memory.
 */
import { formatBytesBriefly, formatShare } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import {
  type AdviceJson,
  callsForAction,
  type DiagnosisJson,
  type SuspectJson,
} from "../../model/documents/diagnosis_document.js";
import { ownFrame } from "../../model/documents/own_code.js";
import { namedHolder } from "../causes/named_holder.js";
import type { Evidence, MemoryEndEvidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import type { SiteHistories, SiteHistory } from "../sites/site_history.js";
import { adviceById } from "../wording/advice.js";
import { frameText } from "../wording/words.js";

/** A leak must hold this share of the live bytes at the end to count as the cause. */
const FAIR_SHARE = 0.25;
const LEAST_SHARE = 0.03;
const MOST_SUSPECTS = 10;
const CONFIDENCE = 0.9;
/** For an rlimit, if no agent saw the allocation fail. */
const CONFIDENCE_NEAR_RLIMIT = 0.6;
/** The recommended limit, as a multiple of the present one. */
const MORE_ROOM = 1.5;
const MIB = 2 ** 20;
/** Advice to watch the process, which no longer exists. */
const WATCHES = new Set(["TM-A090"]);

/** Returns the document as it is if no process ran out of memory. */
export function withMemoryEnd(document: DiagnosisJson, observations: Observations): DiagnosisJson {
  const { evidence } = observations;
  const end = decisiveEnd(evidence);
  if (end === undefined) {
    return document;
  }
  const { sites, total } = largestAtEnd(evidence, end);
  const accused = document.suspects.reduce((sum, { liveBytes }) => sum + liveBytes, 0);
  const { kind } = document.verdict;
  const stands =
    callsForAction(kind) && (document.suspects.length === 0 || accused >= FAIR_SHARE * total);
  const filled = sites.map(({ site, bytes }, i) => ({
    ...suspectOf(document, site, bytes, total, i + 1),
    ...holderOf(observations, site),
  }));
  const suspects = stands && document.suspects.length > 0 ? document.suspects : filled;
  const summary = stands
    ? `${end.sentence} ${document.verdict.summary}`
    : `${end.sentence} ${filledSentence(filled)}`;
  return {
    ...document,
    verdict: stands
      ? { ...document.verdict, summary }
      : {
          kind: "out-of-memory",
          confidence: isUnseen(end) ? CONFIDENCE_NEAR_RLIMIT : CONFIDENCE,
          summary,
        },
    growth: { ...document.growth, msToLimit: 0 },
    suspects: suspects.map((suspect) => ({ ...suspect, advice: lasting(suspect.advice) })),
    advice: [...(stands ? lasting(document.advice) : []), raiseLimit(end, suspects)],
    evidence: [
      ...end.evidence.map((detail) => ({
        rule: "memory-end",
        says: "leak" as const,
        detail,
      })),
      // A rule that asks for a longer window assumes a running process.
      ...document.evidence.filter(({ rule }) => rule !== "window"),
    ],
  };
}

function isUnseen({ cause, failedBytes }: MemoryEndEvidence): boolean {
  return cause === "rlimit" && failedBytes === undefined;
}

/** The program's own end, otherwise the last of its processes whose allocations were recorded. */
function decisiveEnd(evidence: Evidence): MemoryEndEvidence | undefined {
  const { memoryEnds = [], target } = evidence;
  return (
    memoryEnds.find(({ pid }) => pid === target.pid) ??
    memoryEnds.findLast((end) => largestAtEnd(evidence, end).sites.length > 0) ??
    memoryEnds.at(-1)
  );
}

/** The largest sites of the process at its end; at the peak for a child, or if it freed memory as it ended. */
function largestAtEnd({ sites, sitesAtPeak }: Evidence, { pid, cause }: MemoryEndEvidence) {
  const ownOf = (histories: SiteHistories | undefined) =>
    [...(histories?.sites ?? []), ...(histories?.passing ?? [])].filter((site) => site.pid === pid);
  const last = (all: readonly SiteHistory[]) => all.map((site) => site.liveBytes.at(-1) ?? 0);
  const own = ownOf(sites);
  // A child that has ended has no live bytes at the last snapshot.
  const isFreed = cause === "rlimit" || sum(last(own)) === 0;
  const chosen = isFreed && sitesAtPeak !== undefined ? ownOf(sitesAtPeak) : own;
  const bytes = last(chosen);
  const total = sum(bytes);
  const rows = chosen
    .map((site, i) => ({ site, bytes: bytes[i] ?? 0 }))
    .filter((row) => row.bytes > LEAST_SHARE * total)
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MOST_SUSPECTS);
  return { sites: rows, total };
}

function sum(values: readonly Bytes[]): Bytes {
  return values.reduce((all, bytes) => all + bytes, 0);
}

function suspectOf(
  { window }: DiagnosisJson,
  site: SiteHistory,
  bytes: number,
  total: number,
  rank: number,
): SuspectJson {
  return {
    rank,
    share: Math.min(1, bytes / total),
    liveBytes: Math.round(bytes),
    growthBytesPerHour: 0,
    atEnd: true,
    stack: [...(site.keptStacks[0]?.frames ?? [])],
    domain: site.domain,
    pid: site.pid,
    ages: [],
    history: [{ timeMs: window.endMs, bytes: Math.round(bytes) }],
    ...(site.type === undefined ? {} : { type: site.type }),
    advice: [],
  };
}

function holderOf(observations: Observations, site: SiteHistory): Pick<SuspectJson, "holder"> {
  const holder = namedHolder(observations, site, "out-of-memory");
  return holder === null ? {} : { holder };
}

function filledSentence(suspects: readonly SuspectJson[]): string {
  const [first] = suspects;
  if (first === undefined) {
    return "What used the memory is unknown: no agent recorded its allocations.";
  }
  const place = frameText(ownFrame(first.stack));
  const part = first.share > 0.5 ? "most" : "the largest part";
  return `${place} had allocated ${part} of the live memory: ${formatBytesBriefly(first.liveBytes)}, ${formatShare(first.share)} of it.`;
}

function lasting(advice: readonly AdviceJson[]): AdviceJson[] {
  return advice.filter(({ id }) => !WATCHES.has(id));
}

const RAISE_LIMIT: Readonly<Record<MemoryEndEvidence["cause"], string>> = {
  cgroup: "TM-A095",
  rlimit: "TM-A096",
  machine: "TM-A097",
};

function raiseLimit(end: MemoryEndEvidence, suspects: readonly SuspectJson[]): AdviceJson {
  const usual = adviceById(RAISE_LIMIT[end.cause]);
  const [first] = suspects;
  const more = Math.ceil((MORE_ROOM * end.limitBytes) / MIB) * MIB;
  const filled =
    first === undefined
      ? "Record it from the start to see what uses its memory: tidemark run PROGRAM."
      : `Find out first why ${frameText(ownFrame(first.stack))} keeps ${formatBytesBriefly(first.liveBytes)}, and bound it.`;
  const raise =
    end.cause === "machine"
      ? "Give the machine more memory, or limit the program with a control group"
      : `Raise the limit${end.limitBytes > 0 ? ` to ${formatBytesBriefly(more)}` : ""}`;
  return { ...usual, text: `${filled} ${raise} only if the program needs that much at its peak.` };
}
