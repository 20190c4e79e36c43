/**
 * Progress of long work, on one line of a terminal's stderr that goes when the work is done:
 *
 *     tidemark: app.duckdb: 120 of 1,400 looks, 38/s, about 34 s left
 */

import { setImmediate } from "node:timers/promises";
import { formatCount, formatDuration } from "../../model/base/numbers.js";
import type { Tell } from "../../model/base/units.js";
import { cutEnd, screenOf } from "./output.js";

/** The terminal may be written to this often, in ms. */
const REDRAW_MS = 100;
/** Work that is done before this is not worth a line. */
const SILENT_MS = 300;
const TO_LINE_START = "\r\x1b[K";

/** A line of a terminal that each next one replaces. */
export interface StatusLine {
  /** Writes nothing where there is no terminal. */
  show(text: string): void;
  /** Takes the line away, before anything else is written. */
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
  /** ms of a clock that never goes back. */
  readonly now?: () => number;
}

/**
 * Runs `work`, which tells after each of its steps how many of how many are done. Each telling lets an
 * interrupt in, which would else wait for the end of work that never leaves its loop. Nothing is
 * written where `stream` (stderr) is no terminal, or with `quiet`.
 */
export async function withProgress<Result>(
  name: string,
  unit: string,
  { quiet = false, stream = process.stderr, now = () => performance.now() }: ProgressOptions,
  work: (tell: Tell) => Promise<Result>,
): Promise<Result> {
  const shown = !quiet && stream.isTTY === true;
  let startedMs = now();
  let drawnMs = startedMs + SILENT_MS - REDRAW_MS;
  let drawn = false;
  const status = statusLine(stream);
  const tell: Tell = async (done, of) => {
    const nowMs = now();
    if (done === 0) {
      startedMs = nowMs; // what went before does not count in the rate
    }
    if (shown && (nowMs - drawnMs >= REDRAW_MS || (drawn && done === of))) {
      status.show(progressLine(name, unit, done, of, nowMs - startedMs));
      drawnMs = nowMs;
      drawn = true;
    }
    await setImmediate();
  };
  try {
    return await work(tell);
  } finally {
    status.clear();
  }
}

/** "app.html: 12 of 60 looks, 6.0/s, about 8.0 s left"; `spentMs` is the time since the start. */
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
      done < of
        ? `about ${formatDuration((spentMs / done) * (of - done))} left`
        : "writing the last of it",
    );
  }
  return parts.join(", ");
}
