/**
 * Whether an instance that seems to grow alone also does so in plain view. What siblings share is removed from each of them
 * first (sibling_course.ts), and where an instance follows the load more closely than the others, some of it stays:
 *
 *   siblings   34.1 ▁▁▁▂▇▆▅▆▇ 36.3 % of the limit       the week begins
 *   odd?       34.1 ▁▁▁▂█▇▅▆█ 37.4                      0.3 % further between thirds of the time, of 1.1 % that it "grew"
 *   leak       34.1 ▁▂▃▄▅▆▇██ 38.0
 */
import type { Bytes, Millis, TimeMs } from "../../../model/base/units.js";
import { firstFrom, medianOf } from "../../series/medians.js";
import { median } from "../../series/trend.js";
import type { Unloaded } from "../curves/load_removal.js";

export const FEWEST_SIBLINGS = 3;
/** The share of its growth by which an instance has to be ahead of its siblings. */
const LEAST_AHEAD = 0.5;
/** The share of its growth by which one that was restarted has to be above what its siblings ever had. */
const LEAST_ABOVE = 0.25;
/** The readings at the end of a life whose median is its level. */
const LAST_READINGS = 5;

/** The part of a life at its start that is not compared, and how near to an age its readings are, as shares of the life. */
const EARLY = 0.15;
const NEAR = 0.05;
const LEAST_COMPARED = 0.3;
const LEAST_LIFE_MS: Millis = 2 * 3_600_000;

export interface Window {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
}

/** One figure of each instance or life of a service. */
interface Figures<Of> {
  readonly of: ReadonlyMap<Of, Bytes>;
  readonly ascending: Float64Array;
}

/** From the first third of a window to its last, of the processes that lived throughout. */
type Rises = Figures<Unloaded>;

/** The most memory that each instance ever had, at the end of a life. */
type HighestLevels = Figures<string>;

export function risesIn(processes: readonly Unloaded[], window: Window): Rises {
  return figures(
    processes.flatMap((each) => riseIn(each, window).map((rise) => [each, rise] as const)),
  );
}

export function highestLevels(processes: readonly Unloaded[]): HighestLevels {
  const levels = new Map<string, Bytes>();
  for (const { process } of processes) {
    const level = median(process.rss.values.slice(-LAST_READINGS));
    levels.set(process.instance, Math.max(level, levels.get(process.instance) ?? 0));
  }
  return figures([...levels]);
}

function figures<Of>(entries: readonly (readonly [Of, Bytes])[]): Figures<Of> {
  const of = new Map(entries);
  return { of, ascending: Float64Array.from(of.values()).sort() };
}

/**
 * Whether it rose further than its siblings, by at least half of its own growth, before load was removed. True if it or they
 * did not live throughout. `rate`: bytes per ms. `rises`: its own and those of its siblings.
 */
export function isAhead(
  own: readonly Unloaded[],
  rate: number,
  window: Window,
  { of, ascending }: Rises,
): boolean {
  const [only, ...others] = own;
  const rise = only === undefined || others.length > 0 ? undefined : of.get(only);
  return (
    rise === undefined ||
    ascending.length < FEWEST_SIBLINGS ||
    rise - medianWithout(ascending, rise) >=
      LEAST_AHEAD * rate * (2 / 3) * (window.endMs - window.startMs)
  );
}

/**
 * Whether it was restarted, and in no life came to have more memory than most of its siblings ever had, by a part of what its
 * longest life gains at this rate. `levels`: its own and those of its siblings.
 */
export function fillsAgain(
  own: readonly Unloaded[],
  rate: number,
  { of, ascending }: HighestLevels,
): boolean {
  const [first, ...restarted] = own;
  const highest = first === undefined ? undefined : of.get(first.process.instance);
  if (highest === undefined || restarted.length === 0) {
    return false;
  }
  const gained = rate * Math.max(...own.map(lengthOf));
  return highest <= medianWithout(ascending, highest) + LEAST_ABOVE * gained;
}

/** The median of all values but one of these. */
function medianWithout(ascending: Float64Array, value: Bytes): Bytes {
  const left = firstFrom(ascending, value);
  const others = ascending.length - 1;
  const at = (index: number) => ascending[index < left ? index : index + 1] ?? 0;
  return (at((others - 1) >> 1) + at(others >> 1)) / 2;
}

/**
 * Whether most lives of an instance rose further than its siblings did at the same ages, by at least half of its growth. One
 * life alone may have started before the peak of the day, and a cache or a pool then fills as it did before. True if siblings
 * did not live as long. `windowMs`: of the rate, before which the instance need not have grown.
 */
export function areMostLivesAhead(
  own: readonly Unloaded[],
  siblings: readonly Unloaded[],
  rate: number,
  windowMs: Millis = Number.POSITIVE_INFINITY,
): boolean {
  // The age that enough of the siblings reached.
  const reached = siblings.map(lengthOf).sort((a, b) => b - a)[FEWEST_SIBLINGS - 2] ?? 0;
  const compared = own.flatMap((life) => {
    const toMs = Math.min(lengthOf(life), reached);
    const ages = { fromMs: EARLY * toMs, toMs };
    const isComparable = toMs >= LEAST_LIFE_MS && toMs >= LEAST_COMPARED * lengthOf(life);
    const [rise] = isComparable ? riseAt(life, ages) : [];
    const others = siblings.flatMap((each) => riseAt(each, ages));
    return rise === undefined || others.length < FEWEST_SIBLINGS - 1
      ? []
      : [rise - median(others) >= LEAST_AHEAD * rate * Math.min(windowMs, (1 - EARLY) * toMs)];
  });
  const ahead = compared.filter((isAhead) => isAhead);
  return compared.length === 0 || 2 * ahead.length > compared.length;
}

export function lengthOf({ process, rss }: Unloaded): Millis {
  return (rss.times.at(-1) ?? process.startedMs) - process.startedMs;
}

/** Between ages. Nothing if the process did not live as long. */
function riseAt(
  { process, rss: { times, values } }: Unloaded,
  { fromMs, toMs }: { readonly fromMs: Millis; readonly toMs: Millis },
): Bytes[] {
  const half = NEAR * toMs;
  const levelAt = (ageMs: Millis) => {
    const middle = process.startedMs + ageMs;
    const [from, to] = [firstFrom(times, middle - half), firstFrom(times, middle + half)];
    return to > from ? [medianOf(values, from, to)] : [];
  };
  const [start, end] = [levelAt(fromMs), levelAt(toMs - half)];
  return start.flatMap((low) => end.map((high) => high - low));
}

/** Nothing if the process did not live throughout. */
function riseIn({ process: { rss } }: Unloaded, { startMs, endMs }: Window): Bytes[] {
  const third = (endMs - startMs) / 3;
  const { times, values } = rss;
  const [from, to] = [firstFrom(times, startMs + third), firstFrom(times, endMs - third)];
  const first = firstFrom(times, startMs);
  const isWhole =
    (times[first] ?? endMs) < startMs + third / 2 && (times.at(-1) ?? startMs) > endMs - third / 2;
  return isWhole && from > first && to < times.length
    ? [medianOf(values, to, values.length) - medianOf(values, first, from)]
    : [];
}
