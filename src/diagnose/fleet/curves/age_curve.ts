/**
 * The usual course of memory over the age of a process, from many processes that started at different times:
 *
 *   process  1  ▁▃▄▅▆▇█                 level(process, age) = offset(process) + curve(age)
 *            2     ▁▃▄▅▆      ->  ▁▃▄▅▆▇█
 *            3        ▁▃▄             0 h ... age
 *
 * Restarts do not hide growth, because each life adds to the same curve, and the processes' own levels are offsets. Where
 * most processes started before the window, ages do not overlap; the curve is then over the time of the window.
 *
 * The curve ends where the processes do: of all lengths L, the one that determines a slope best, by the root of the number of
 * processes that lived for L, times L^1.5. Shorter lives are left out, and the ends of longer ones. Otherwise the curve would
 * bend wherever a process that grows faster or more slowly than the others ends.
 */
import type { Millis, TimeMs } from "../../../model/base/units.js";
import { binnedMedians, firstFrom } from "../../series/medians.js";
import type { Readings } from "../../series/readings.js";
import { median, theilSenSlope } from "../../series/trend.js";
import type { Unloaded } from "./load_removal.js";

/** Bins of a window. */
const BINS = 96;
const LEAST_BIN_MS: Millis = 60_000;
const ROUNDS = 24;
/** Offsets that change by fewer bytes have converged. */
const LEAST_MOVE = 1;
/** A process that is present for less of the curve says little about it. */
const FEWEST_BINS = 3;

export interface AgeCurve extends Readings {
  /** By bin: how many processes. */
  readonly weights: readonly number[];
  /** `times` if time passed in proportion to the requests; null: requests are unknown. */
  readonly workTimes: readonly number[] | null;
  /** Of one process, as a mean over the curve; 0: unknown. */
  readonly requestsPerMs: number;
  /** "age": times are ages; "time": times of the window, from processes that are older than it. */
  readonly axis: "age" | "time";
  readonly processes: number;
  readonly binMs: Millis;
}

interface Window {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
}

/** By bin; NaN: no reading. */
type Levels = Float64Array;

interface Binned {
  readonly isYoung: boolean;
  readonly levels: Levels;
  readonly work: Levels | null;
}

/** null without readings. */
export function ageCurve(processes: readonly Unloaded[], window: Window): AgeCurve | null {
  const lengthMs = lengthOf(processes, window);
  const binMs = Math.max(LEAST_BIN_MS, lengthMs / BINS);
  const binned = processes.flatMap(({ process, rss, work }): Binned[] => {
    const isYoung = process.startedMs >= window.startMs;
    const fromMs = isYoung ? process.startedMs : window.startMs;
    const bins = { fromMs, binMs };
    const levels = binnedMedians(rss, bins, window);
    const done =
      work === null ? null : binnedMedians({ times: rss.times, values: work }, bins, window);
    return readIn(levels) >= FEWEST_BINS ? [{ isYoung, levels, work: done }] : [];
  });
  const [young, old] = [true, false].map((isYoung) =>
    longest(binned.filter((each) => each.isYoung === isYoung)),
  ) as [Part, Part];
  const { chosen, worth } = young.worth >= old.worth ? young : old;
  if (worth === 0) {
    return null;
  }
  const curve = combined(
    chosen.map(({ levels }) => levels),
    binMs,
  );
  const works = chosen.flatMap(({ work }) => work ?? []);
  const work = works.length < chosen.length ? null : combined(works, binMs).values;
  return {
    ...curve,
    ...{ workTimes: null, requestsPerMs: 0 },
    ...(work === null ? {} : workOver(work, curve.times)),
    axis: young.worth >= old.worth ? "age" : "time",
    binMs,
  };
}

/** The work of each bin, scaled so that it begins and ends with the times. */
function workOver(
  work: readonly number[],
  times: readonly number[],
): Partial<Pick<AgeCurve, "workTimes" | "requestsPerMs">> {
  const [first, start] = [work[0] ?? 0, times[0] ?? 0];
  const done = (work.at(-1) ?? 0) - first;
  const lengthMs = (times.at(-1) ?? 0) - start;
  return done > 0 && lengthMs > 0
    ? {
        workTimes: work.map((each) => start + ((each - first) * lengthMs) / done),
        requestsPerMs: done / lengthMs,
      }
    : {};
}

interface Part {
  readonly chosen: readonly Binned[];
  readonly worth: number;
}

function longest(all: readonly Binned[]): Part {
  const lengths = all.map(({ levels }) => levels.length);
  const reads = all.map(({ levels }) => readUntil(levels));
  let best = { length: 0, worth: 0 };
  for (const length of new Set(lengths)) {
    // A process that was watched for a part of the curve counts for that part.
    const lived = reads.reduce((sum, read) => sum + (read[length - 1] ?? 0) / length, 0);
    const worth = Math.sqrt(lived) * length ** 1.5;
    if (worth > best.worth) {
      best = { length, worth };
    }
  }
  const cut = (levels: Levels) => levels.subarray(0, best.length);
  const chosen = all
    .filter((_, at) => (lengths[at] as number) >= best.length)
    .map(({ isYoung, levels, work }) => ({
      isYoung,
      levels: cut(levels),
      work: work === null ? null : cut(work),
    }))
    .filter(({ levels }) => readIn(levels) >= FEWEST_BINS);
  return { chosen, worth: chosen.length === 0 ? 0 : best.worth };
}

/** By bin: how many of the levels up to it were read. */
function readUntil(levels: Levels): Float64Array {
  let count = 0;
  return levels.map((level) => {
    count += Number(!Number.isNaN(level));
    return count;
  });
}

function readIn(levels: Levels): number {
  return levels.reduce((count, level) => count + Number(!Number.isNaN(level)), 0);
}

/** The longest span of readings that one process has in the window. */
function lengthOf(processes: readonly Unloaded[], { startMs, endMs }: Window): Millis {
  let longest = 0;
  for (const { rss } of processes) {
    const first = rss.times[firstFrom(rss.times, startMs)] ?? endMs;
    const last = rss.times[firstFrom(rss.times, endMs + 1) - 1] ?? startMs;
    longest = Math.max(longest, last - first);
  }
  return longest;
}

/** Least squares of offset + curve by alternating means. The curve's mean level is that of the processes. */
function combined(
  processes: readonly Levels[],
  binMs: Millis,
): Omit<AgeCurve, "axis" | "binMs" | "workTimes" | "requestsPerMs"> {
  const size = processes.reduce((most, { length }) => Math.max(most, length), 0);
  const weights = new Float64Array(size);
  for (const levels of processes) {
    for (let bin = 0; bin < levels.length; bin++) {
      weights[bin] = (weights[bin] as number) + Number(!Number.isNaN(levels[bin]));
    }
  }
  const means = processes.map((levels) => meanAbove(levels, new Float64Array(levels.length)));
  const middle = median(means);
  const offsets = means.map((mean) => mean - middle);
  const curve = new Float64Array(size);
  for (let round = 0; round < (processes.length === 1 ? 1 : ROUNDS); round++) {
    curve.fill(0);
    processes.forEach((levels, process) => {
      const offset = offsets[process] as number;
      for (let bin = 0; bin < levels.length; bin++) {
        const level = levels[bin] as number;
        if (!Number.isNaN(level)) {
          curve[bin] = (curve[bin] as number) + (level - offset) / (weights[bin] as number);
        }
      }
    });
    let moved = 0;
    processes.forEach((levels, process) => {
      const offset = meanAbove(levels, curve);
      moved = Math.max(moved, Math.abs(offset - (offsets[process] as number)));
      offsets[process] = offset;
    });
    if (moved < LEAST_MOVE) {
      break;
    }
  }
  const bins = Array.from(weights.keys()).filter((bin) => weights[bin] !== 0);
  return {
    times: bins.map((bin) => (bin + 0.5) * binMs),
    values: bins.map((bin) => curve[bin] as number),
    weights: bins.map((bin) => weights[bin] as number),
    processes: processes.length,
  };
}

/** The mean distance of a process from a curve. */
function meanAbove(levels: Levels, curve: Levels): number {
  let [sum, count] = [0, 0];
  for (let bin = 0; bin < levels.length; bin++) {
    const level = levels[bin] as number;
    if (!Number.isNaN(level)) {
      sum += level - (curve[bin] as number);
      count += 1;
    }
  }
  return sum / count;
}

/** The first ages, which start-up bends, as a share of the curve. */
export const EARLY = 0.15;

/**
 * The slope of the later half of a curve as a share of that before: 1 of a leak, and less of what fills. Over `times`, which are
 * those of the requests if growth follows them more closely. 1 if the curve does not begin with the processes. `from`: the share of
 * the curve that is left out at its start.
 */
export function lateShare({ axis, times, values }: AgeCurve, from = EARLY): number {
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  const at = (share: number) => firstFrom(times, first + share * (last - first));
  const slope = (from: number, to: number) =>
    theilSenSlope(times.slice(from, to), values.slice(from, to));
  const half = at(0.5 + (from - EARLY) / 2);
  const before = slope(at(from), half);
  return axis === "age" && before > 0 ? slope(half, times.length) / before : 1;
}

/** In less time the load of a day may bend what is straight, and straighten what bends. */
export const LOAD_BENDS_MS: Millis = 36 * 3_600_000;
/** A slope of the later half, as a share of that before, of what clearly fills. */
const BENT = 0.55;

/**
 * {@link lateShare} where requests are known. Within a day and a half, the load can straighten over time what bends over requests: what
 * clearly bends over these fills. Later, load can bend a leak over either axis; the one over which it is straighter counts.
 */
export function lateOnAxes(byTime: AgeCurve, isByWork: boolean, from: number): number {
  const ofTime = lateShare(byTime, from);
  if (byTime.workTimes === null) {
    return ofTime;
  }
  const ofWork = lateShare({ ...byTime, times: byTime.workTimes }, from);
  const lengthMs = (byTime.times.at(-1) ?? 0) - (byTime.times[0] ?? 0);
  if (lengthMs < LOAD_BENDS_MS) {
    return isByWork || ofWork < BENT ? ofWork : ofTime;
  }
  return Math.abs(ofWork - 1) < Math.abs(ofTime - 1) ? ofWork : ofTime;
}
