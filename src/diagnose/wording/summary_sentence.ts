import { formatBytesBriefly, formatDurationBriefly } from "../../model/base/numbers.js";
import type {
  DiagnosisJson,
  SuspectJson,
  VerdictKind,
} from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";
import { headlineOf } from "../sites/headline_frame.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { frameText } from "./words.js";

const WHAT: Readonly<Record<VerdictKind, string>> = {
  steady: "Memory is steady",
  "warm-up": "Memory grew at the start and is flat since: a warm-up",
  "cache-plateau": "A cache filled up to its bound",
  "python-leak": "Python objects accumulate",
  "cycle-garbage": "Unreachable cycles wait for the garbage collector",
  "native-leak": "Native memory is never freed",
  "graph-retention": "Tensors are kept together with their autograd graphs",
  "allocator-retention": "The program frees its memory, but the allocator keeps it",
  "file-growth": "Mapped files accumulate",
  "shm-growth": "Shared memory accumulates",
  "child-growth": "Worker processes grow",
  "copy-on-write": "Memory shared by a fork turns private in the children",
  "gpu-leak": "Device memory accumulates",
  "gpu-fragmentation": "Device memory is fragmented",
  "gpu-contention": "Another process takes the device's memory",
  "gpu-capacity": "The job needs more memory than the device has",
  "handle-leak": "Open files, sockets or threads are never given back",
  "insufficient-evidence": "There is not enough evidence for a verdict",
};

/** A rule's own sentence about a device, behind what it is. */
export function deviceSummary(kind: VerdictKind, detail: string): string {
  const follows = /^[A-Z][a-z ]/.test(detail) ? detail[0]?.toLowerCase() + detail.slice(1) : detail;
  return `${WHAT[kind]}: ${follows}`;
}

/** What is there, and what would settle it: the words of the rule that asks for more. */
export function insufficientSummary(detail: string): string {
  return `${WHAT["insufficient-evidence"]}: ${detail}`;
}

/** One sentence: what it is, where, who holds it, how fast, until when. */
export function summaryOf(
  kind: VerdictKind,
  { target, windowMs }: Observations,
  growth: DiagnosisJson["growth"],
  accused: readonly SiteJudgement[],
  suspects: readonly SuspectJson[],
): string {
  const [first] = accused;
  const parts = [WHAT[kind]];
  if (first) {
    parts.push(whence(kind, first));
    const { holder, puts, stack } = suspects[0] ?? {};
    if (holder) {
      const putter = puts ? `, ${frameText(stack?.[0])} puts them there` : "";
      parts.push(`${holder.path.join(" → ")} holds them${putter}`);
    }
    if (growth.bytesPerHour > 0) {
      parts.push(`${formatBytesBriefly(growth.bytesPerHour)}/h`);
    }
  } else if (growth.bytesPerHour > 0 && !HARMLESS.has(kind)) {
    parts.push(`${formatBytesBriefly(growth.bytesPerHour)}/h`);
  } else {
    parts.push(
      `${formatBytesBriefly(target.growth("rssBytes").level)} resident after ${formatDurationBriefly(windowMs)}`,
    );
  }
  if (growth.msToLimit > 0) {
    parts.push(
      `the limit of ${formatBytesBriefly(growth.limitBytes)} is reached in ${formatDurationBriefly(growth.msToLimit)}`,
    );
  }
  return `${parts[0]}: ${parts.slice(1).join("; ")}.`;
}

function whence(kind: VerdictKind, { site }: SiteJudgement): string {
  const made = site.keptStacks.length > 0 ? frameText(headlineOf(site)) : "";
  if (kind === "allocator-retention" && made !== "") {
    return `what ${made} keeps lies between what was freed`;
  }
  if (kind === "copy-on-write" && made !== "") {
    return `above all what ${made} had made before the fork`;
  }
  return site.type === undefined
    ? `${frameText(headlineOf(site))} is where they come from`
    : `${site.type} objects above all${made === "" ? "" : `, made by ${made}`}`;
}

const HARMLESS = new Set<VerdictKind>([
  "steady",
  "warm-up",
  "cache-plateau",
  "insufficient-evidence",
]);
