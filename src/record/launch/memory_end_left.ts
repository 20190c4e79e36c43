/**
 * Whether a program whose recorder had left, or was killed before it, was itself killed for memory. Sources, in order:
 *
 *   the kernel's log            names its process
 *   the group's count of kills  is higher than at the recording's last poll, and the guard saw SIGKILL
 */
import {
  findCgroup,
  readGroupCounters,
  readKernelKills,
  readLimiting,
  readMachineMemory,
} from "../../linux/index.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { TimeMs } from "../../model/base/units.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import type { Metric } from "../../model/profile/series.js";
import type { OpenRecording } from "../../recording/reader.js";
import type { ExitReport } from "../process/exit_report.js";
import { killedByCounters, killedByKernel } from "../process/memory_ends.js";

const SIGKILL = 9;

/** `timeMs`: when the program ended. Null where it was not killed for memory, or nobody knows. */
export function memoryEndLeft(
  recording: OpenRecording,
  report: ExitReport,
  timeMs: TimeMs,
): MemoryEnd | null {
  const isSeen = report.exitCode !== null || report.signal !== null;
  if (isSeen && report.signal !== SIGKILL) {
    return null;
  }
  const last = (metric: Metric) => recording.series[0]?.values.get(metric)?.at(-1) ?? 0;
  const ended = {
    pid: recording.meta.pid,
    timeMs,
    last: {
      rssBytes: last("rssBytes"),
      vmsBytes: last("vmsBytes"),
      vmPeakBytes: last("vmPeakBytes"),
      vmDataBytes: last("vmDataBytes"),
    },
    maxRssBytes: report.maxRssBytes,
  };
  const kill = kernelKillOf(recording);
  if (kill !== undefined) {
    return killedByKernel(ended, kill, readMachineMemory());
  }
  // The guard, and so this process, is in the program's group unless the program was moved.
  const place = isSeen ? findCgroup(process.pid) : null;
  const group = place === null ? null : readLimiting(place);
  return place !== null && (group?.oomKills ?? 0) > last("cgroupOomKills")
    ? killedByCounters(ended, readGroupCounters(place), readMachineMemory())
    : null;
}

function kernelKillOf({ meta, startMs }: OpenRecording) {
  const sinceMs = monotonicMs() - (Date.now() - startMs);
  // A recording from before the last boot: the log's pids are others.
  return sinceMs < 0 ? undefined : readKernelKills(sinceMs)?.find(({ pid }) => pid === meta.pid);
}
