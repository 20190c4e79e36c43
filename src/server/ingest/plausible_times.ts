import type { TimeMs } from "../../model/base/units.js";
import type { StreamItem } from "../../recording/stream_reader.js";

const EARLIEST_MS: TimeMs = Date.UTC(2000, 0, 1);
const MS_PER_DAY = 86_400_000;

/**
 * A sentence if frames are dated before 2000 or more than a day ahead, which means that their clock is wrong;
 * otherwise null.
 */
export function implausibleTime(items: readonly StreamItem[], nowMs: TimeMs): string | null {
  for (const item of items) {
    for (const timeMs of timesOf(item)) {
      const implausible = implausibleMoment(timeMs, nowMs, "frames are");
      if (implausible !== null) {
        return implausible;
      }
    }
  }
  return null;
}

/** The same for one moment. `what`: "the profile is". */
export function implausibleMoment(timeMs: TimeMs, nowMs: TimeMs, what: string): string | null {
  if (!(timeMs >= EARLIEST_MS)) {
    return `${what} dated before 2000 (${text(timeMs)}): the sender's clock is wrong`;
  }
  if (timeMs > nowMs + MS_PER_DAY) {
    return `${what} dated more than a day ahead (${text(timeMs)}): the sender's clock or the server's is wrong`;
  }
  return null;
}

function timesOf(item: StreamItem): Iterable<TimeMs> {
  switch (item.kind) {
    case "meta":
      return [item.meta.startedMs];
    case "processes":
      return item.rows.flatMap(({ startedMs, endedMs }) => [startedMs, endedMs ?? startedMs]);
    case "metrics":
      return item.batch.timeMs;
    case "profile":
      return [item.profile.timeMs, ...item.profile.processes.map(({ startedMs }) => startedMs)];
    case "events":
      return item.events.map(({ timeMs }) => timeMs);
    case "end":
      return [item.end.timeMs];
  }
}

function text(timeMs: TimeMs): string {
  return Math.abs(timeMs) < 8.64e15 ? new Date(timeMs).toISOString() : String(timeMs);
}
