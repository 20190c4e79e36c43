/**
 * The usual course of memory over the age of a process, from many processes that started at different times:
 *
 *   process  1  ▁▃▄▅▆▇█                 level(process, age) = offset(process) + curve(age)
 *            2     ▁▃▄▅▆      ->  ▁▃▄▅▆▇█
 *            3        ▁▃▄             0 h ... age
 *
 * Restarts do not hide growth, because each life adds to the same curve, and the processes' own levels are offsets. Where
 * most processes started before the window, ages do not overlap; the curve is then over the time of the window.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
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
  /** "age": times are ages; "time": times of the window, from processes that are older than it. */
  readonly axis: "age" | "time";
  readonly processes: number;
  readonly binMs: Millis;
}

interface Window {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
}

interface Binned {
  readonly isYoung: boolean;
  /** By bin. */
  readonly levels: ReadonlyMap<number, number>;
}

/** null without readings. */
export function ageCurve(processes: readonly Unloaded[], window: Window): AgeCurve | null {
  const lengthMs = lengthOf(processes, window);
  const binMs = Math.max(LEAST_BIN_MS, lengthMs / BINS);
  const binned = processes.flatMap(({ process, rss }): Binned[] => {
    const isYoung = process.startedMs >= window.startMs;
    const fromMs = isYoung ? process.startedMs : window.startMs;
    const levels = levelsOf(rss, window, (time) => Math.floor((time - fromMs) / binMs));
    return levels.size >= FEWEST_BINS ? [{ isYoung, levels }] : [];
  });
  const bins = (isYoung: boolean) =>
    binned.reduce((sum, each) => sum + (each.isYoung === isYoung ? each.levels.size : 0), 0);
  const isYoung = bins(true) >= bins(false);
  const chosen = binned.filter((each) => each.isYoung === isYoung).map(({ levels }) => levels);
  return chosen.length === 0
    ? null
    : { ...combined(chosen, binMs), axis: isYoung ? "age" : "time", binMs };
}

/** From the first reading in the window to its end. */
function lengthOf(processes: readonly Unloaded[], { startMs, endMs }: Window): Millis {
  let first = endMs;
  for (const { rss } of processes) {
    const time = rss.times.find((each) => each >= startMs);
    first = Math.min(first, time ?? endMs);
  }
  return endMs - first;
}

function levelsOf(
  { times, values }: Readings,
  { startMs, endMs }: Window,
  binOf: (timeMs: number) => number,
): Map<number, number> {
  const kept = new Map<number, number[]>();
  times.forEach((time, at) => {
    if (time >= startMs && time <= endMs) {
      const bin = binOf(time);
      const level = kept.get(bin);
      if (level === undefined) {
        kept.set(bin, [values[at] as number]);
      } else {
        level.push(values[at] as number);
      }
    }
  });
  return new Map([...kept].map(([bin, levels]) => [bin, median(levels)]));
}

/** Least squares of offset + curve by alternating means. The curve's mean level is that of the processes. */
function combined(
  processes: readonly ReadonlyMap<number, number>[],
  binMs: Millis,
): Omit<AgeCurve, "axis" | "binMs"> {
  const bins = [...new Set(processes.flatMap((levels) => [...levels.keys()]))].sort((a, b) => a - b);
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
