/**
 * Finds which processes were killed for memory if the recorder had left or was killed before. Sources, in order:
 *
 *   the kernel's log            names the process
 *   the group's count of kills  is higher than at the recording's last poll, and the guard saw SIGKILL: the program
 */
import {
  findCgroup,
  type KernelKill,
  readGroupCounters,
  readKernelKills,
  readLimiting,
  readMachineMemory,
} from "../../linux/index.js";
import { monotonicMs, nowMs } from "../../linux/this_process/clock.js";
import type { Pid, TimeMs } from "../../model/base/units.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import type { Metric } from "../../model/profile/series.js";
import type { OpenRecording } from "../../recording/reader.js";
import type { ExitReport } from "../process/exit_report.js";
import { type EndedProcess, killedByCounters, killedByKernel } from "../process/memory_ends.js";

const SIGKILL = 9;

/**
 * `pids`: all processes known to the recording and the agents. `timeMs`: when the program ended. Empty if none
 * was killed for memory, or it is unknown.
 */
export function memoryEndsLeft(
  recording: OpenRecording,
  pids: ReadonlySet<Pid>,
  report: ExitReport,
  timeMs: TimeMs,
): MemoryEnd[] {
  const known = new Set(recording.memoryEnds.map(({ pid }) => pid));
  const byLog = kernelKillsOf(recording)
    .filter(({ pid }) => pids.has(pid) && !known.has(pid))
    .map((kill) =>
      killedByKernel(
        endedProcess(recording, kill.pid, report, Math.min(timeMs, realTimeOf(kill))),
        kill,
        readMachineMemory(),
      ),
    );
  const root = recording.meta.pid;
  if (known.has(root) || byLog.some(({ pid }) => pid === root) || report.signal !== SIGKILL) {
    return byLog;
  }
  // The guard, and thus this process, is in the program's control group unless the program was moved.
  const place = findCgroup(process.pid);
  const kills = (place === null ? null : readLimiting(place))?.oomKills ?? 0;
  const killsBefore = recording.series[0]?.values.get("cgroupOomKills")?.at(-1) ?? 0;
  return place === null || kills <= killsBefore
    ? byLog
    : [
        ...byLog,
        killedByCounters(
          endedProcess(recording, root, report, timeMs),
          readGroupCounters(place),
          readMachineMemory(),
        ),
      ];
}

/** Times in the log are relative to boot. */
function realTimeOf({ atMs }: KernelKill): TimeMs {
  return nowMs() - (monotonicMs() - atMs);
}

/** Its figures at the last poll; none if it started later. */
function endedProcess(
  recording: OpenRecording,
  pid: Pid,
  report: ExitReport,
  timeMs: TimeMs,
): EndedProcess {
  const series = recording.series.find((one) => one.pid === pid);
  const last = (metric: Metric) => series?.values.get(metric)?.at(-1) ?? 0;
  return {
    pid,
    timeMs,
    last: {
      rssBytes: last("rssBytes"),
      vmsBytes: last("vmsBytes"),
      vmPeakBytes: last("vmPeakBytes"),
      vmDataBytes: last("vmDataBytes"),
    },
    maxRssBytes: pid === recording.meta.pid ? report.maxRssBytes : 0,
  };
}

function kernelKillsOf({ startMs }: OpenRecording): readonly KernelKill[] {
  const sinceMs = monotonicMs() - (nowMs() - startMs);
  // The recording is older than the last boot, so the log's pids belong to other processes.
  return sinceMs < 0 ? [] : (readKernelKills(sinceMs) ?? []);
}
