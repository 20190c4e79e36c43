/** The values under the pointer: memory at that time, and nearby events. */
import type { TimelineEvent } from "../../../src/model/profile/series.js";
import { formatBytes, formatElapsed, formatWallClock } from "../format/numbers.js";
import type { TimelineCurves } from "./useTimelineCurves.js";

interface TimelineReadoutProps {
  timeMs: number;
  startMs: number;
  curves: TimelineCurves;
  events: readonly TimelineEvent[];
  /** Visible seconds. */
  span: number;
}

export function TimelineReadout({ timeMs, startMs, curves, events, span }: TimelineReadoutProps) {
  const { memory, device, live } = curves;
  const rss = lastBefore(memory.times, memory.rss, timeMs / 1000);
  const pss = lastBefore(memory.times, memory.pss, timeMs / 1000);
  const held = device && lastBefore(memory.times, device.reserved, timeMs / 1000);
  const whole = live.stacked.at(-1);
  const total = whole === undefined ? null : lastBefore(live.times, whole, timeMs / 1000);
  const near = events.filter((event) => Math.abs(event.timeMs - timeMs) < span * 6).slice(0, 2);
  return (
    <>
      <b>{formatElapsed(timeMs, startMs)}</b>
      <span title="local time of day">{formatWallClock(timeMs)}</span>
      {rss !== null && (
        <span>
          {memory.name} {formatBytes(rss)}
        </span>
      )}
      {pss !== null && <span>PSS {formatBytes(pss)}</span>}
      {held !== null && <span>device {formatBytes(held)}</span>}
      {total !== null && <span>live {formatBytes(total)}</span>}
      {near.map((event) => (
        <em key={`${event.timeMs}${event.kind}${event.pid}`}>{eventWords(event)}</em>
      ))}
    </>
  );
}

function eventWords(event: TimelineEvent): string {
  return `${event.kind.replace("-", " ")} ${event.pid}${event.detail ? `: ${event.detail}` : ""}`;
}

function lastBefore(
  times: readonly number[],
  values: readonly (number | null)[],
  time: number,
): number | null {
  let found: number | null = null;
  for (const [i, at] of times.entries()) {
    if (at > time) {
      break;
    }
    found = values[i] ?? found;
  }
  return found;
}
