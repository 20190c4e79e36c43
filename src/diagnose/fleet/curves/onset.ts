/**
 * Growth that began while the processes ran: by a feature flag, by data, or by a client that changed. The longest window mixes it
 * with the level before it, which no fit explains:
 *
 *   7 d   ▁▁▂▁▁▂▁▁▁▂▁▃▄▅▆▇█     level, then a line: judged since the bend
 *   7 d   ▂▄▆█▁▃▅▇▁▃▅▇▁▃▅▇     rises to what it was before: a cache that is flushed
 */
import type { Millis } from "../../../model/base/units.js";
import { firstFrom, reorderedQuantile } from "../../series/medians.js";
import { median } from "../../series/trend.js";
import { type AgeCurve, EARLY } from "./age_curve.js";
import { equationsOf, fitOf } from "./least_squares.js";

/** The bend lies between these shares of the curve. */
const BEND = { least: 0.15, most: 0.9 };
/** Bins between the bends that are tried. */
const EVERY = 3;
/** The squares that a bend leaves of those of a straight line. */
const MOST_LEFT = 0.3;
/** Bins whose median is the level at the end, and fewest of the time before. */
const LAST_BINS = 3;
const FEWEST_BEFORE = 8;
/** What was usual before, without spikes; and the share of its growth by which memory has to be above it. */
const HIGHEST = 0.95;
const LEAST_ABOVE = 0.5;

/** How long ago a level curve began to rise; null: it has no such bend, or does not show the time before. */
export function onsetOf(curve: AgeCurve): Millis | null {
  if (curve.times.length < 2 * FEWEST_BEFORE) {
    return null;
  }
  const last = curve.times.at(-1) as number;
  // Without start-up.
  const started = curve.axis === "age" ? firstFrom(curve.times, EARLY * last) : 0;
  const times = curve.times.slice(started);
  const read = new Float64Array(curve.values.slice(started));
  const weight = new Float64Array(curve.weights.slice(started));
  const ones = new Float64Array(times.length).fill(1);
  const fitFrom = (from: number) => {
    const since = Float64Array.from(times, (time) => Math.max(0, time - from) / last);
    return fitOf(equationsOf([ones, since], read, weight));
  };
  const straight = fitFrom(0);
  const bends = times
    .slice(Math.ceil(BEND.least * times.length), Math.floor(BEND.most * times.length))
    .filter((_, at) => at % EVERY === 0)
    .flatMap((from) => {
      const fit = fitFrom(from);
      return fit !== null && (fit.factors[1] as number) > 0 ? [{ from, squares: fit.squares }] : [];
    });
  const best = bends.reduce<(typeof bends)[number] | null>(
    (least, each) => (least === null || each.squares < least.squares ? each : least),
    null,
  );
  return straight !== null && best !== null && best.squares < MOST_LEFT * straight.squares
    ? last - best.from
    : null;
}

/** Whether growth of the last part of a curve went beyond what the same processes had before. True if the curve does not show it. */
export function isAboveBefore(
  { times, values }: AgeCurve,
  { windowMs, rate }: { readonly windowMs: Millis; readonly rate: number },
): boolean {
  const last = times.at(-1) ?? 0;
  const before = values.filter((_, at) => (times[at] as number) < last - windowMs);
  return (
    before.length < FEWEST_BEFORE ||
    median(values.slice(-LAST_BINS)) - reorderedQuantile(Float64Array.from(before), HIGHEST) >
      LEAST_ABOVE * rate * windowMs
  );
}
