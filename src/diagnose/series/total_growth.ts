/** The growth rate of a whole process tree's memory, used by the header, the verdict and the JSON. */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import { assessGrowth, type Growth, isFirm, isWindowShort, withoutRate } from "./growth.js";
import { type Readings, readingsOf } from "./readings.js";
import { median } from "./trend.js";

export interface TotalGrowth extends Growth {
  readonly metric: Metric;
  readonly readings: Readings;
  readonly end: LevelAtEnd;
}

/** The last reading of the measure that the header shows. */
export interface LevelAtEnd {
  /** PSS or RSS of the whole tree; RSS of the only process. */
  readonly metric: Metric;
  readonly bytes: Bytes;
  /** When it was read; 0 without a reading. */
  readonly timeMs: TimeMs;
  /** Of a tree: the median of this measure after the first third of the window; 0 for the only process. */
  readonly usualBytes: Bytes;
}

/**
 * The growth that a site's share refers to: that of the whole program if it grows with certainty, but at least
 * `kept`, the growth of all sites.
 */
export function growthShown(total: TotalGrowth, kept: number): number {
  return isFirm(total) ? Math.max(kept, total.slope) : kept;
}

/** The name of the memory that was measured, as the subject of a sentence. */
export function memoryName({ metric }: Pick<TotalGrowth, "metric">): string {
  const names: Partial<Record<Metric, string>> = {
    treePssBytes: "PSS of the process tree",
    treeRssBytes: "The sum of RSS of the process tree",
  };
  return names[metric] ?? "RSS";
}

/** Steps of a launcher (a pyenv shim, a shell script) are so brief and small. */
const BRIEF_MS: Millis = 1_000;
const SMALL_BYTES: Bytes = 16 * 2 ** 20;

export interface Member {
  readonly series: MemorySeries;
  readonly startedMs: TimeMs;
  readonly endedMs: TimeMs | null;
}

/** Whether the process ended so soon and was so small that it means nothing for the memory of its tree. */
export function isPassing({ series, startedMs, endedMs }: Member): boolean {
  const highest = (metric: Metric) =>
    series.values.get(metric)?.reduce((most, value) => (value > most ? value : most), 0) ?? 0;
  return (
    endedMs !== null &&
    endedMs - startedMs < BRIEF_MS &&
    highest("rssBytes") < SMALL_BYTES &&
    highest("vmHwmBytes") < SMALL_BYTES
  );
}

/**
 * The number of processes that make a tree, at least one. The steps of a launcher do not: PSS, which is read rarely,
 * would then say less than the RSS of the only process.
 */
export function membersOf(processes: readonly Member[]): number {
  return Math.max(1, processes.filter((process) => !isPassing(process)).length);
}

/** A program that frees its memory before it exits ends below its level. */
const MOST_FREED = 0.8;

/** The level before the end, if the last reading is far below it: the program cleaned up, or its processes ended. */
export function levelBeforeEnd({ metric, level, end, shape }: TotalGrowth): Bytes | null {
  const before =
    end.usualBytes > 0 ? end.usualBytes : metric === end.metric && shape !== "short" ? level : 0;
  return end.bytes < MOST_FREED * before ? before : null;
}

/** The last level of the memory that was measured: that of the header if it shows the same measure. */
export function levelNow(total: TotalGrowth): Bytes {
  const { metric, level, end } = total;
  return metric === end.metric && levelBeforeEnd(total) === null ? end.bytes : level;
}

/** "resident" for one process; for a tree the measure: "PSS". */
export function measureName({ metric }: LevelAtEnd): string {
  return metric === "treePssBytes" ? "PSS" : metric === "treeRssBytes" ? "sum of RSS" : "resident";
}

/**
 * PSS of a tree at each time: where it was read, and between two readings as long as the number of processes stays the
 * same. The kernel walks all pages for PSS, so it is read rarely; what RSS gains meanwhile is memory that no other
 * process of the tree shares, unless processes were forked. NaN where it is unknown.
 */
export function pssOfTree({ values }: MemorySeries): Float64Array {
  const [rss, pss, children] = [
    values.get("treeRssBytes"),
    values.get("treePssBytes"),
    values.get("children"),
  ];
  let read = { pss: Number.NaN, rss: Number.NaN, children: Number.NaN };
  let count = Number.NaN;
  return Float64Array.from(pss ?? [], (own, i) => {
    const resident = rss?.[i] ?? Number.NaN;
    const now = children?.[i] ?? Number.NaN;
    count = Number.isNaN(now) ? count : now;
    if (own > 0) {
      read = { pss: own, rss: resident, children: count };
      return own;
    }
    return count === read.children && resident > 0
      ? Math.min(resident, read.pss + Math.max(0, resident - read.rss))
      : Number.NaN;
  });
}

/** A reading and its time. */
export interface Reading {
  readonly bytes: Bytes;
  readonly timeMs: TimeMs;
}

/** An interpreter may take this long to free what the program left. */
const LONGEST_EXIT_MS: Millis = 2_000;
/** Live bytes are an estimate. */
const SURELY_LIVE = 0.9;

/** Whether RSS is certainly less than what was live until the exit. */
export function isBelowLive(rssBytes: Bytes, liveBytes: Bytes): boolean {
  return rssBytes < SURELY_LIVE * liveBytes;
}

/**
 * The last reading of a tree's RSS or of a process's. A process that is ending shows 0 bytes for a moment, which does not
 * count. Nor does a reading during the exit: it is below `liveBytes`, what the program held until then; 0 if unknown.
 */
export function lastReading(
  { timesMs, values }: MemorySeries,
  metric: Metric,
  liveBytes: Bytes = 0,
): Reading | null {
  const all = values.get(metric);
  const end = all?.findLastIndex((reading) => reading > 0) ?? -1;
  if (all === undefined || end < 0) {
    return null;
  }
  const reading = (at: number) => ({ bytes: all[at] as number, timeMs: timesMs[at] as number });
  const before = all.findLastIndex(
    (bytes, i) => i <= end && bytes > 0 && !isBelowLive(bytes, liveBytes),
  );
  const isExit = before >= 0 && reading(end).timeMs - reading(before).timeMs <= LONGEST_EXIT_MS;
  return reading(isExit ? before : end);
}

/**
 * PSS of a tree, if it was read while the processes were not much smaller than at their peak; otherwise RSS. PSS is
 * polled rarely; the RSS of the remaining processes at the end bounds it.
 */
export function levelAtEnd(
  series: MemorySeries,
  members: number,
  liveBytes: Bytes = 0,
): LevelAtEnd {
  const rss =
    lastReading(series, "treeRssBytes", liveBytes) ?? lastReading(series, "rssBytes", liveBytes);
  const { bytes, timeMs } = rss ?? { bytes: 0, timeMs: 0 };
  if (members <= 1) {
    return { metric: "rssBytes", bytes, timeMs, usualBytes: 0 };
  }
  const allPss = pssOfTree(series);
  const at = allPss.findLastIndex((reading) => reading > 0);
  if (at < 0 || !wasPssReadNearPeak(series)) {
    const usualBytes = usualLevel(series, series.values.get("treeRssBytes"));
    return { metric: "treeRssBytes", bytes, timeMs, usualBytes };
  }
  const pss = { bytes: allPss[at] as number, timeMs: series.timesMs[at] as number };
  const last = bytes > 0 && bytes < pss.bytes ? { bytes, timeMs } : pss;
  return { metric: "treePssBytes", ...last, usualBytes: usualLevel(series, allPss) };
}

/** Median of the readings after the first third of the window; 0 if there is none. */
function usualLevel({ timesMs }: MemorySeries, readings: Float64Array = new Float64Array()): Bytes {
  const [first, last] = [timesMs[0] ?? 0, timesMs.at(-1) ?? 0];
  const fromMs = first + (last - first) / 3;
  const known = readings.filter((bytes, i) => bytes > 0 && (timesMs[i] ?? 0) >= fromMs);
  return known.length === 0 ? 0 : median([...known]);
}

function wasPssReadNearPeak({ values }: MemorySeries): boolean {
  const [rss, pss] = [values.get("treeRssBytes"), values.get("treePssBytes")];
  const highest = (counts: (i: number) => boolean) =>
    rss?.reduce((most, reading, i) => (reading > most && counts(i) ? reading : most), 0) ?? 0;
  return highest((i) => (pss?.[i] ?? 0) > 0) >= highest(() => true) / 2;
}

/** Without a rate in a window too short for one, however many readings it has. */
function growthOf(readings: Readings): Growth {
  const growth = assessGrowth(readings);
  return isWindowShort(readings) ? withoutRate(growth) : growth;
}

/** PSS counts shared memory once; it is polled less often than RSS. */
const FEWEST_OF_PSS = 16;

/** The first process of a tree, whose series carries the tree's figures. */
interface Root {
  readonly series: MemorySeries;
  readonly endedMs: TimeMs | null;
  /** What was live at the end, of the whole tree; absent if no profile contains it. */
  readonly liveBytes?: Bytes;
}

/**
 * `members`: number of processes in the tree, of {@link membersOf}. A single process is judged by its own RSS, a tree by its PSS, or by its RSS if PSS was
 * read too rarely.
 */
export function totalGrowth({ series, endedMs, liveBytes }: Root, members: number): TotalGrowth {
  const candidates: readonly [Metric, number][] =
    members > 1
      ? [
          ["treePssBytes", FEWEST_OF_PSS],
          ["treeRssBytes", 1],
        ]
      : [];
  const end = levelAtEnd(series, members, liveBytes);
  for (const [metric, fewest] of candidates) {
    const readings = readingsOf(series, metric, endedMs);
    const growth = growthOf(readings);
    // A recorder of many programs reads PSS so rarely after the first minutes that it shows no rate.
    const shows = metric === "treeRssBytes" || growth.shape !== "short";
    if (readings.values.length >= fewest && shows) {
      return { metric, readings, end, ...growth };
    }
  }
  const readings = readingsOf(series, "rssBytes", endedMs);
  return { metric: "rssBytes", readings, end, ...growthOf(readings) };
}
