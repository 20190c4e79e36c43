/** The growth rate of a whole process tree's memory, used by the header, the verdict and the JSON. */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import { assessGrowth, type Growth, isFirm, isWindowShort, withoutRate } from "./growth.js";
import { type Readings, readingsOf } from "./readings.js";

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

/** Whether the last reading is far below the level of the last tenth of the window, because the program cleaned up. */
export function freedAtEnd({ metric, level, end, shape }: TotalGrowth): boolean {
  return metric === end.metric && shape !== "short" && end.bytes < MOST_FREED * level;
}

/** The last level of the memory that was measured: that of the header if it shows the same measure. */
export function levelNow(total: TotalGrowth): Bytes {
  const { metric, level, end } = total;
  return metric === end.metric && !freedAtEnd(total) ? end.bytes : level;
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

/**
 * PSS of a tree, if it was read while the processes were not much smaller than at their peak; otherwise RSS. PSS is
 * polled rarely; the RSS of the remaining processes at the end bounds it. A process that is ending shows 0 bytes for
 * a moment, which does not count.
 */
export function levelAtEnd(series: MemorySeries, members: number): LevelAtEnd {
  const last = (metric: Metric) =>
    series.values.get(metric)?.findLast((reading) => reading > 0) ?? 0;
  const rss = last("treeRssBytes") || last("rssBytes");
  const pss = pssOfTree(series).findLast((reading) => reading > 0) ?? 0;
  return members > 1 && pss > 0 && wasPssReadNearPeak(series)
    ? { metric: "treePssBytes", bytes: rss > 0 ? Math.min(pss, rss) : pss }
    : { metric: members > 1 ? "treeRssBytes" : "rssBytes", bytes: rss };
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

/**
 * `root`: the first process of the tree, whose series carries the tree's figures. `members`: number of
 * processes in the tree, of {@link membersOf}. A single process is judged by its own RSS, a tree by its PSS, or by its RSS if PSS was
 * read too rarely.
 */
export function totalGrowth(
  { series, endedMs }: { readonly series: MemorySeries; readonly endedMs: TimeMs | null },
  members: number,
): TotalGrowth {
  const candidates: readonly [Metric, number][] =
    members > 1
      ? [
          ["treePssBytes", FEWEST_OF_PSS],
          ["treeRssBytes", 1],
        ]
      : [];
  const end = levelAtEnd(series, members);
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
