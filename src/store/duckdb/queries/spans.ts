/**
 * A window is cut at the limits of hours and days:
 *
 *     15:40 │ 16:00  17:00 ... 24:00 │ day │ day │ ... │ 0:00 ... 9:00 │ 9:20
 *      now  │         kept           │       kept      │     kept      │ now
 *
 * Results for whole hours and days are kept (kept_spans.ts); the two ends are read again each time.
 */
import type { Millis, TimeMs } from "../../../model/base/units.js";
import type { Window } from "../../interface/window.js";
import type { KeptSpans, Span, SpanKey } from "../kept/kept_spans.js";
import type { RowReader } from "../row_database.js";
import { longestCarryMs, type OfSeries } from "./gauge.js";

export const HOUR_MS: Millis = 3_600_000;
export const DAY_MS: Millis = 24 * HOUR_MS;
/** A shorter window is read at once. */
const SHORTEST_CUT_MS: Millis = 3 * HOUR_MS;
/** Spans that are read at once: more take less time, but more memory. */
const MOST_AT_ONCE = 12;

/** Spans of the same length. */
export interface Part {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
  readonly stepMs: Millis;
  readonly isKept: boolean;
}

/** The spans that make up a window, in order; `compute` makes those that are not kept, one for each step of a part. */
export async function spansOf<Value extends Span>(
  window: Window,
  kept: KeptSpans<Value>,
  key: SpanKey,
  compute: (part: Part) => Promise<readonly Value[]>,
): Promise<Value[]> {
  const all: Value[] = [];
  for (const part of partsOf(window, Date.now())) {
    if (!part.isKept) {
      all.push(...(await compute(part)));
      continue;
    }
    for (const run of runsOf(part, (startMs, endMs) => kept.find(key, startMs, endMs))) {
      all.push(
        ...("found" in run
          ? [run.found]
          : await kept.compute(key, run.missing.endMs, () => compute(run.missing))),
      );
    }
  }
  return all;
}

/** The spans that are found, and between them those that are missing, several at a time. */
function runsOf<Value extends Span>(
  { startMs, endMs, stepMs }: Part,
  find: (startMs: TimeMs, endMs: TimeMs) => Value | undefined,
): ({ readonly found: Value } | { readonly missing: Part })[] {
  const runs: ({ found: Value } | { missing: Part })[] = [];
  for (let at = startMs; at < endMs; at += stepMs) {
    const found = find(at, at + stepMs);
    const last = runs.at(-1);
    if (found !== undefined) {
      runs.push({ found });
    } else if (
      last !== undefined &&
      "missing" in last &&
      at - last.missing.startMs < (MOST_AT_ONCE - 1) * stepMs
    ) {
      last.missing = { ...last.missing, endMs: at + stepMs };
    } else {
      runs.push({ missing: { startMs: at, endMs: at + stepMs, stepMs, isKept: true } });
    }
  }
  return runs;
}

/** The part of a window in which the store has data of these series. */
export async function withData(
  database: RowReader,
  { startMs, endMs }: Window,
  condition: OfSeries,
): Promise<Window> {
  const [first, last] = [database.days[0], database.days.at(-1)];
  if (first === undefined || last === undefined) {
    return { startMs, endMs: startMs };
  }
  const lastMs = Date.parse(last) + DAY_MS;
  return {
    startMs: Math.max(Math.round(startMs), Date.parse(first)),
    endMs: Math.min(
      Math.round(endMs),
      endMs <= lastMs ? lastMs : lastMs + (await longestCarryMs(database, lastMs, condition)),
    ),
  };
}

/** Exported for its test. */
export function partsOf({ startMs, endMs }: Window, nowMs: TimeMs): Part[] {
  if (endMs <= startMs) {
    return [];
  }
  const parts: Part[] = [];
  const add = (untilMs: TimeMs, stepMs: Millis, isKept: boolean) => {
    const fromMs = parts.at(-1)?.endMs ?? startMs;
    if (untilMs > fromMs) {
      parts.push({ startMs: fromMs, endMs: untilMs, stepMs, isKept });
    }
  };
  // Spans of the future are not over.
  const keptEndMs = Math.min(endMs, nowMs);
  const firstHour = Math.ceil(startMs / HOUR_MS) * HOUR_MS;
  const lastHour = Math.floor(keptEndMs / HOUR_MS) * HOUR_MS;
  if (endMs - startMs >= SHORTEST_CUT_MS && firstHour < lastHour) {
    const firstDay = Math.ceil(firstHour / DAY_MS) * DAY_MS;
    const lastDay = Math.floor(lastHour / DAY_MS) * DAY_MS;
    add(firstHour, firstHour - startMs, false);
    if (firstDay < lastDay) {
      add(firstDay, HOUR_MS, true);
      add(lastDay, DAY_MS, true);
    }
    add(lastHour, HOUR_MS, true);
  }
  const fromMs = parts.at(-1)?.endMs ?? startMs;
  add(endMs, endMs - fromMs, false);
  return parts;
}
