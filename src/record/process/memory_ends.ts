/** Converts evidence of a process's end to a {@link MemoryEnd} with its source. */
import type { GroupCounters, KernelKill, MemoryRlimits } from "../../linux/index.js";
import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatShare,
} from "../../model/base/numbers.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import type { FailedAllocation } from "../../segment/index.js";
import type { ExitReport } from "./exit_report.js";

/** Share of the limit; a group that used less was not at its limit. */
const AT_LIMIT = 0.9;
/** Share of an rlimit; the failed request is not in the address space and may be a large part of it. */
const NEAR_RLIMIT = 0.6;
/** A program that ends because an allocation failed first reports it, and closes what it has open. */
const RIGHT_BEFORE_MS: Millis = 5_000;
/** abort(), a bus error, a segmentation fault: the effects of a null pointer in native code. */
const FAILURE_SIGNALS: ReadonlySet<number> = new Set([6, 7, 11]);

/** A process's figures at its last poll. */
export interface LastFigures {
  readonly rssBytes: Bytes;
  readonly vmsBytes: Bytes;
  readonly vmPeakBytes: Bytes;
  readonly vmDataBytes: Bytes;
}

export interface EndedProcess {
  readonly pid: Pid;
  readonly timeMs: TimeMs;
  readonly last: LastFigures;
  /** From wait4; 0: unknown. */
  readonly maxRssBytes: Bytes;
}

interface Machine {
  readonly totalBytes: Bytes;
  readonly usedBytes: Bytes;
}

/** The kernel's own report about it. */
export function killedByKernel(
  { pid, timeMs, last, maxRssBytes }: EndedProcess,
  kill: KernelKill,
  { totalBytes }: Machine,
): MemoryEnd {
  const isGroup = kill.cause === "cgroup";
  return {
    pid,
    timeMs,
    cause: kill.cause,
    limitBytes: isGroup ? kill.limitBytes : totalBytes,
    usedBytes: kill.usedBytes,
    rssBytes: kill.rssBytes || maxRssBytes || last.rssBytes,
    limit: kill.group,
    evidence: [
      `The kernel log names process ${pid}: ${isGroup ? `control group ${kill.group || "(not named)"} was at its limit` : "the machine was out of memory"}.`,
    ],
  };
}

/**
 * Groups whose limit was reached between two readings, the innermost first; then those that have disappeared meanwhile. In a
 * pod, the kernel ends all processes of the container (memory.oom.group), and the runtime removes the container's group at
 * once: only the pod's counters, which include those of the groups below, show that its limit was reached.
 */
export function groupsAtLimit(
  before: readonly GroupCounters[],
  now: readonly GroupCounters[],
): GroupCounters[] {
  const earlier = new Map(before.map((group) => [group.directory, group]));
  const reached = now.filter(
    ({ directory, failures }) => failures > (earlier.get(directory)?.failures ?? failures),
  );
  const left = new Set(now.map(({ directory }) => directory));
  const removed = before.flatMap((group) => {
    const { directory, limitBytes } = group;
    return left.has(directory) || limitBytes === null ? [] : { ...group, peakBytes: limitBytes };
  });
  return reached.length === 0 ? [] : [...reached, ...removed];
}

/** The kernel's kill counters rose as the process ended. `groups`: those whose limit was reached in that time. */
export function killedByCounters(
  { pid, timeMs, last, maxRssBytes }: EndedProcess,
  groups: readonly GroupCounters[],
  machine: Machine,
): MemoryEnd {
  const rssBytes = Math.max(maxRssBytes, last.rssBytes);
  const full = groups.find(
    ({ limitBytes, peakBytes, usedBytes }) =>
      limitBytes !== null && (peakBytes || usedBytes + rssBytes) >= AT_LIMIT * limitBytes,
  );
  if (full === undefined) {
    return {
      pid,
      timeMs,
      cause: "machine",
      limitBytes: machine.totalBytes,
      usedBytes: 0,
      rssBytes,
      limit: "",
      evidence: [
        "The kernel counted a process killed for memory, and no control group of the process was at its limit.",
      ],
    };
  }
  const limitBytes = full.limitBytes ?? 0;
  return {
    pid,
    timeMs,
    cause: "cgroup",
    limitBytes,
    usedBytes: Math.min(limitBytes, full.peakBytes || full.usedBytes + rssBytes),
    rssBytes,
    limit: full.directory,
    evidence: [
      `The kernel counted a process killed for memory in control group ${full.directory}, whose limit was reached.`,
    ],
  };
}

/**
 * It ended with an error because an allocation failed at its own limit; null if it did not. Its agent saw one fail right
 * before; without an agent, its address space was near the limit. `report`: null if nobody knows how it ended; then it has to
 * have been at the limit. `failed`: the newest allocation that its agent saw fail; null: it saw none; undefined: there was no
 * agent that sees large allocations.
 */
export function stoppedByRlimit(
  { pid, timeMs, last, maxRssBytes }: EndedProcess,
  limits: MemoryRlimits | undefined,
  report: Pick<ExitReport, "exitCode" | "signal"> | null,
  failed: FailedAllocation | null | undefined,
): MemoryEnd | null {
  const { exitCode = null, signal = null } = report ?? {};
  const isError = signal === null ? exitCode !== 0 : FAILURE_SIGNALS.has(signal);
  if (!isError) {
    return null;
  }
  const isSeen = failed != null && timeMs - failed.timeMs <= RIGHT_BEFORE_MS;
  const { addressSpaceBytes = null, dataBytes = null } = (isSeen ? failed : limits) ?? {};
  // Pages that became resident after the last poll were probably mapped after it; that alone accuses nothing if the agent saw all.
  const isCertain = !isSeen && failed !== undefined;
  const since = isCertain ? 0 : Math.max(0, maxRssBytes - last.rssBytes);
  const candidates = [
    {
      limit: "RLIMIT_AS",
      limitBytes: addressSpaceBytes ?? 0,
      usedBytes: Math.max(last.vmPeakBytes, last.vmsBytes + since),
    },
    { limit: "RLIMIT_DATA", limitBytes: dataBytes ?? 0, usedBytes: last.vmDataBytes + since },
  ].filter(({ limitBytes }) => limitBytes > 0);
  // A small request, which the agent does not see, fails only at the limit itself.
  const leastShare = report === null || failed !== undefined ? AT_LIMIT : NEAR_RLIMIT;
  const reached = isSeen
    ? candidates.sort((a, b) => b.usedBytes / b.limitBytes - a.usedBytes / a.limitBytes)[0]
    : candidates.find(({ limitBytes, usedBytes }) => usedBytes >= leastShare * limitBytes);
  if (reached === undefined) {
    return null;
  }
  const { limit, limitBytes } = reached;
  const usedBytes = Math.min(reached.usedBytes, limitBytes);
  const how =
    report === null
      ? ""
      : signal === null
        ? ` with exit code ${exitCode}`
        : ` with signal ${signal}`;
  const of = `${limit} (${formatBytesBriefly(limitBytes)})`;
  return {
    pid,
    timeMs,
    cause: "rlimit",
    limitBytes,
    usedBytes,
    rssBytes: Math.max(maxRssBytes, last.rssBytes),
    limit,
    ...(isSeen ? { failedBytes: failed.bytes } : {}),
    evidence: [
      isSeen
        ? `It ended${how}, ${formatDurationBriefly(Math.max(0, timeMs - failed.timeMs))} after an allocation of ${formatBytesBriefly(failed.bytes)} had failed within ${of}.`
        : `It ended${how} at ${formatShare(usedBytes / limitBytes)} of ${of}: a failed allocation (MemoryError, a null pointer) is the likely cause.`,
    ],
  };
}
