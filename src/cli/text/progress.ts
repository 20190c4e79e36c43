/**
 * Progress of long work, on one line of stderr that is removed when the work is done:
 *
 *     tidemark: app.duckdb: 120 of 1,400 snapshots, 38/s, about 34 s left
 */

import { setImmediate } from "node:timers/promises";
import { formatCount, formatDuration } from "../../model/base/numbers.js";
import type { OnProgress } from "../../model/base/units.js";
import { cutEnd, screenOf } from "./output.js";

/** Shortest time between two updates of the line, in ms. */
const REDRAW_MS = 100;
/** Work that takes less time than this shows no progress. */
const SILENT_MS = 300;
const TO_LINE_START = "\r\x1b[K";

/** A terminal line that each update replaces. */
export interface StatusLine {
  /** Writes nothing without a terminal. */
  show(text: string): void;
  /** Removes the line before anything else is written. */
  clear(): void;
}

export function statusLine(stream: NodeJS.WriteStream = process.stderr): StatusLine {
  let drawn = false;
  return {
    show(text) {
      if (stream.isTTY === true) {
        stream.write(TO_LINE_START + cutEnd(text, screenOf(stream).columns - 1));
        drawn = true;
      }
    },
    clear() {
      if (drawn) {
        stream.write(TO_LINE_START);
      }
      drawn = false;
    },
  };
}

interface ProgressOptions {
  readonly quiet?: boolean;
  readonly stream?: NodeJS.WriteStream;
  /** Time of a monotonic clock in ms. */
  readonly now?: () => number;
}

/**
 * Runs `work`, which reports after each step how many steps of how many are done. Each report lets a pending
 * interrupt be handled, which would otherwise wait until the loop ends. Nothing is written if `stream` (stderr)
 * is not a terminal, or with `quiet`.
 */
export async function withProgress<Result>(
  name: string,
  unit: string,
  { quiet = false, stream = process.stderr, now = () => performance.now() }: ProgressOptions,
  work: (onProgress: OnProgress) => Promise<Result>,
): Promise<Result> {
  const shown = !quiet && stream.isTTY === true;
  let startedMs = now();
  let drawnMs = startedMs + SILENT_MS - REDRAW_MS;
  let drawn = false;
  const status = statusLine(stream);
  const onProgress: OnProgress = async (done, of) => {
    const nowMs = now();
    if (done === 0) {
      startedMs = nowMs; // earlier steps do not count in the rate
    }
    if (shown && (nowMs - drawnMs >= REDRAW_MS || (drawn && done === of))) {
      status.show(progressLine(name, unit, done, of, nowMs - startedMs));
      drawnMs = nowMs;
      drawn = true;
    }
    await setImmediate();
  };
  try {
    return await work(onProgress);
  } finally {
    status.clear();
  }
}

/** "app.html: 12 of 60 snapshots, 6.0/s, about 8.0 s left"; `spentMs` is the time since the start. */
export function progressLine(
  name: string,
  unit: string,
  done: number,
  of: number,
  spentMs: number,
): string {
  const parts = [`tidemark: ${name}: ${formatCount(done)} of ${formatCount(of)} ${unit}`];
  if (done > 0 && spentMs > 0) {
    const perSecond = (done * 1000) / spentMs;
    parts.push(`${perSecond < 10 ? perSecond.toFixed(1) : formatCount(perSecond)}/s`);
    parts.push(
      done < of ? `about ${formatDuration((spentMs / done) * (of - done))} left` : "finishing",
    );
  }
  return parts.join(", ");
}
