/** Why a process that ran out of memory ended, as a recording stores it. */
import { formatBytesBriefly } from "../base/numbers.js";
import type { Bytes, Pid, TimeMs } from "../base/units.js";

/**
 * `cgroup`: the kernel killed it because its control group was at its limit. `machine`: because the machine had no
 * memory left. `rlimit`: an allocation failed because the process was at its own limit (ulimit -v, -d), and it
 * ended with an error, or nobody knows how.
 */
export const MEMORY_END_CAUSES = ["cgroup", "machine", "rlimit"] as const;
export type MemoryEndCause = (typeof MEMORY_END_CAUSES)[number];

export interface MemoryEnd {
  readonly pid: Pid;
  readonly timeMs: TimeMs;
  readonly cause: MemoryEndCause;
  /** Limit of the control group, the machine, or the rlimit; 0: unknown. */
  readonly limitBytes: Bytes;
  /** Usage of that limit, by everything that counts against it, at the end; 0: unknown. */
  readonly usedBytes: Bytes;
  /** RSS of the process at its end, otherwise at its last poll; 0: unknown. */
  readonly rssBytes: Bytes;
  /** The control group's directory or the kernel's path of it, or "RLIMIT_AS", "RLIMIT_DATA"; "" for the machine. */
  readonly limit: string;
  /** For an rlimit: the allocation that its agent saw fail right before; absent: none was seen. */
  readonly failedBytes?: Bytes;
  /** The evidence, as sentences. */
  readonly evidence: readonly string[];
}

/** "Process 42 was killed by the OOM killer of its control group: limit 400 MiB, 398 MiB used". */
export function memoryEndSentence(end: MemoryEnd, target: Pid): string {
  const who = end.pid === target ? "The program" : `Its process ${end.pid}`;
  const size = formatBytesBriefly;
  if (end.cause === "rlimit") {
    const unit = end.limit === "RLIMIT_DATA" ? "data" : "address space";
    const used = end.usedBytes > 0 ? `, ${size(end.usedBytes)} used` : "";
    const why =
      end.failedBytes === undefined
        ? `, probably because it had run out of ${unit}`
        : ` right after an allocation of ${size(end.failedBytes)} had failed`;
    return `${who} ended${why}: ${end.limit} ${size(end.limitBytes)}${used}`;
  }
  const killer =
    end.cause === "cgroup"
      ? "the OOM killer of its control group"
      : "the OOM killer: the machine was out of memory";
  const figures = [
    end.limitBytes > 0
      ? `${end.cause === "cgroup" ? "limit" : "memory"} ${size(end.limitBytes)}`
      : "",
    end.usedBytes > 0 ? `${size(end.usedBytes)} used` : "",
    end.rssBytes > 0 ? `${size(end.rssBytes)} resident in the process` : "",
  ].filter((figure) => figure !== "");
  const join = end.cause === "cgroup" ? ": " : "; ";
  return `${who} was killed by ${killer}${figures.length > 0 ? join : ""}${figures.join(", ")}`;
}
