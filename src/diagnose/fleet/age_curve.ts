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
import type { Millis, TimeMs } from "../../model/base/units.js";
import { firstFrom, mediansOf } from "../series/medians.js";
import type { Readings } from "../series/readings.js";
import { median } from "../series/trend.js";
import type { Unloaded } from "./load_removal.js";

/** Bins of a window. */
const BINS = 96;
const LEAST_BIN_MS: Millis = 60_000;
const ROUNDS = 24;
/** A process that is present for less of the curve says little about it. */
const FEWEST_BINS = 3;

export interface AgeCurve extends Readings {
  /** By bin: how many processes. */
  readonly weights: readonly number[];
  /** `times` if time passed in proportion to the requests; null: requests are unknown. */
  readonly workTimes: readonly number[] | null;
  /** "age": times are ages; "time": times of the window, from processes that are older than it. */
  readonly axis: "age" | "time";
  readonly processes: number;
  readonly binMs: Millis;
}

interface Window {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
}

type Levels = ReadonlyMap<number, number>;

interface Binned {
  readonly isYoung: boolean;
  /** By bin. */
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
    const binOf = (time: number) => Math.floor((time - fromMs) / binMs);
    const levels = mediansOf(rss, binOf, window.startMs, window.endMs);
    const done =
      work === null
        ? null
        : mediansOf({ times: rss.times, values: work }, binOf, window.startMs, window.endMs);
    return levels.size >= FEWEST_BINS ? [{ isYoung, levels, work: done }] : [];
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
  return {
    ...curve,
    workTimes:
      works.length < chosen.length ? null : scaled(combined(works, binMs).values, curve.times),
    axis: young.worth >= old.worth ? "age" : "time",
    binMs,
  };
}

/** The work of each bin, scaled so that it begins and ends with the times. null without work. */
function scaled(work: readonly number[], times: readonly number[]): readonly number[] | null {
  const [first, start] = [work[0] ?? 0, times[0] ?? 0];
  const done = (work.at(-1) ?? 0) - first;
  const factor = ((times.at(-1) ?? 0) - start) / done;
  return done > 0 ? work.map((each) => start + (each - first) * factor) : null;
}

interface Part {
  readonly chosen: readonly Binned[];
  readonly worth: number;
}

function longest(all: readonly Binned[]): Part {
  const lengths = all.map(({ levels }) => Math.max(...levels.keys()) + 1);
  let best = { length: 0, worth: 0 };
  for (const length of new Set(lengths)) {
    const lived = lengths.reduce((sum, each) => sum + Number(each >= length), 0);
    const worth = Math.sqrt(lived) * length ** 1.5;
    if (worth > best.worth) {
      best = { length, worth };
    }
  }
  const cut = (levels: Levels) => new Map([...levels].filter(([bin]) => bin < best.length));
  const chosen = all
    .filter((_, at) => (lengths[at] as number) >= best.length)
    .map(({ isYoung, levels, work }) => ({
      isYoung,
      levels: cut(levels),
      work: work === null ? null : cut(work),
    }))
    .filter(({ levels }) => levels.size >= FEWEST_BINS);
  return { chosen, worth: chosen.length === 0 ? 0 : best.worth };
}

/** From the first reading in the window to its end. */
function lengthOf(processes: readonly Unloaded[], { startMs, endMs }: Window): Millis {
  let first = endMs;
  for (const { rss } of processes) {
    first = Math.min(first, rss.times[firstFrom(rss.times, startMs)] ?? endMs);
  }
  return endMs - first;
}

/** Least squares of offset + curve by alternating means. The curve's mean level is that of the processes. */
function combined(
  processes: readonly Levels[],
  binMs: Millis,
): Omit<AgeCurve, "axis" | "binMs" | "workTimes"> {
  const bins = [...new Set(processes.flatMap((levels) => [...levels.keys()]))].sort(
    (a, b) => a - b,
  );
  const place = new Map(bins.map((bin, at) => [bin, at]));
  const rows = processes.map((levels) =>
    [...levels].map(([bin, level]) => [place.get(bin) as number, level] as const),
  );
  const means = rows.map((row) => row.reduce((sum, [, level]) => sum + level, 0) / row.length);
  const middle = median(means);
  const offsets = means.map((mean) => mean - middle);
  const curve = new Array<number>(bins.length).fill(0);
  const weights = new Array<number>(bins.length).fill(0);
  for (const [at] of rows.flat()) {
    weights[at] = (weights[at] as number) + 1;
  }
  for (let round = 0; round < (rows.length === 1 ? 1 : ROUNDS); round++) {
    curve.fill(0);
    rows.forEach((row, process) => {
      for (const [at, level] of row) {
        curve[at] =
          (curve[at] as number) + (level - (offsets[process] as number)) / (weights[at] as number);
      }
    });
    rows.forEach((row, process) => {
      const rest = row.reduce((sum, [at, level]) => sum + level - (curve[at] as number), 0);
      offsets[process] = rest / row.length;
    });
  }
  return {
    times: bins.map((bin) => (bin + 0.5) * binMs),
    values: curve,
    weights,
    processes: processes.length,
  };
}
