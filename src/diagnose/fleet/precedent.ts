/**
 * What earlier versions did at the same age. RSS alone cannot distinguish a young leak from a cache that fills; the
 * version before it often can, because its caches and its warm-up took about as long:
 *
 *   age            0 h ────── 12 h ───────────── 5 d
 *   version 41     ▁▃▄▅▆▆▇▇▇▇▇▇▇█████████████████     rose at this age, then levelled off
 *   version 42     ▁▄▅▆▇▇██                           the same rise: not decided yet
 *
 *   version 41     ▁▆████████████████████████████     was level at this age
 *   version 42     ▁▆▆▇▇▇███                          grows in a straight line: leaks
 *
 * An earlier version counts if it lived longer, was seen from its start, and is itself judged not to grow. A deploy that
 * adds a slow cache where there was none looks like the second case.
 */
import type { Bytes, Millis } from "../../model/base/units.js";
import { firstFrom } from "../series/medians.js";
import { theilSenSlope } from "../series/trend.js";
import { type AgeCurve, ageCurve } from "./age_curve.js";
import type { GroupGrowth } from "./group_growth.js";
import type { Unloaded } from "./load_removal.js";

const HOUR_MS = 3_600_000;
/** A version that rises by more than this multiple of its precedent does more than fill a larger cache. */
const ALIKE = 3.5;
/** A precedent that rises by less than this share of the version was level. */
const LEVEL = 0.15;
/** The part of a curve that is compared: without start-up, and without the fast part of filling. */
const COMPARED_FROM = 1 / 3;
/** Slope of the second half of that part as a share of the first's; less is a curve that bends. */
const STRAIGHT = 0.8;
/** Low end of the interval of a straight line as a share of its rate. */
const SURE = 0.6;
/** Of a version that is decided by precedent. */
export const LEAST_EARLY_MS: Millis = 6 * HOUR_MS;
const FEWEST_LIVES = 3;
/** The least rise within such an early curve, as shares of the level and of the limit. */
const LEAST_RISE = { ofLevel: 0.05, ofLimit: 0.01 };
/** The first reading of a life that was seen from its start comes within this share of the compared age. */
const SEEN_FROM = 0.05;
/** How much longer than the curve a precedent must have lived to have levelled off after it. */
const LONGER = 1.5;

interface Earlier {
  readonly processes: readonly Unloaded[];
  readonly growth: GroupGrowth | null;
}

const CALM = new Set(["flat", "filling", "stepped"]);

/** A leak unless an earlier version rose alike and levelled off. `earlier`: the latest last. */
export function acquittedByPrecedent(
  growth: GroupGrowth,
  earlier: readonly Earlier[],
): GroupGrowth {
  const precedent = growth.shape === "leaking" ? latestPrecedent(growth, earlier) : null;
  return precedent !== null && slopeIn(precedent) * ALIKE > slopeIn(growth.curve)
    ? { ...growth, shape: "undecided" }
    : growth;
}

/** A leak already if it grows in a straight line where the earlier version was level. */
export function accusedByPrecedent(growth: GroupGrowth, earlier: readonly Earlier[]): GroupGrowth {
  const { straight, shape, curve } = growth;
  const precedent = shape === "undecided" ? latestPrecedent(growth, earlier) : null;
  if (precedent === null || precedent.processes < FEWEST_LIVES) {
    return growth;
  }
  return slopeIn(precedent) < LEVEL * slopeIn(curve) && risesStraight(growth)
    ? { ...growth, rate: straight.rate, low: straight.low, high: straight.high, shape: "leaking" }
    : growth;
}

/** Whether an earlier version can show what is usual up to an age. */
export function hasPrecedent(earlier: readonly Earlier[], ageMs: Millis): boolean {
  return earlier.some((each) => (precedentOf(each, ageMs)?.processes ?? 0) >= FEWEST_LIVES);
}

function latestPrecedent({ curve }: GroupGrowth, earlier: readonly Earlier[]): AgeCurve | null {
  return curve.axis === "age"
    ? (earlier.flatMap((each) => precedentOf(each, lengthOf(curve)) ?? []).at(-1) ?? null)
    : null;
}

function lengthOf({ times }: AgeCurve): Millis {
  return (times.at(-1) ?? 0) - (times[0] ?? 0);
}

/** The curve of an earlier version up to an age that it outlived without growing on. null: it is no precedent. */
function precedentOf({ processes, growth }: Earlier, lengthMs: Millis): AgeCurve | null {
  if (growth === null || !CALM.has(growth.shape)) {
    return null;
  }
  const lives = processes.flatMap(({ process, rss, work }): Unloaded[] => {
    const [first, last] = [rss.times[0], rss.times.at(-1)];
    const isSeen =
      first !== undefined &&
      first - process.startedMs <= SEEN_FROM * lengthMs &&
      (last as number) - process.startedMs >= LONGER * lengthMs;
    const until = firstFrom(rss.times, process.startedMs + lengthMs);
    return isSeen
      ? [
          {
            process,
            rss: { times: rss.times.slice(0, until), values: rss.values.slice(0, until) },
            work: work === null ? null : work.slice(0, until),
          },
        ]
      : [];
  });
  const startMs = Math.min(...lives.map(({ process }) => process.startedMs));
  const endMs = Math.max(...lives.map(({ rss }) => rss.times.at(-1) ?? 0));
  return lives.length === 0 ? null : ageCurve(lives, { startMs, endMs });
}

function slopeIn({ times, values }: AgeCurve, from = COMPARED_FROM, to = 1): number {
  const last = times.at(-1) ?? 0;
  const [start, end] = [firstFrom(times, from * last), firstFrom(times, to * last) + 1];
  return theilSenSlope(times.slice(start, end), values.slice(start, end));
}

/** Whether it certainly rises, by enough, and does not bend. */
function risesStraight({ straight, curve, level, limit }: GroupGrowth): boolean {
  const lengthMs = lengthOf(curve);
  const least: Bytes = Math.max(LEAST_RISE.ofLevel * level, LEAST_RISE.ofLimit * limit);
  const middle = (COMPARED_FROM + 1) / 2;
  return (
    lengthMs >= LEAST_EARLY_MS &&
    straight.low > SURE * straight.rate &&
    slopeIn(curve) * lengthMs > least &&
    slopeIn(curve, middle) > STRAIGHT * slopeIn(curve, COMPARED_FROM, middle)
  );
}
