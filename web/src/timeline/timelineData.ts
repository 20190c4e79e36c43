/** Series in uPlot's format: one time axis, one array per curve, null for missing readings. */

import { addAt, float64At, uint8At, uint16At } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import {
  Domain,
  type ProfileSnapshot,
  type ProfileTables,
} from "../../../src/model/profile/profile.js";
import type { MemorySeries, Metric } from "../../../src/model/profile/series.js";

export interface Curves {
  /** Seconds since 1970, as uPlot requires. */
  readonly times: number[];
  readonly rss: (number | null)[];
  readonly pss: (number | null)[];
  /** What `rss` holds: files of other tools may have live bytes over time and no RSS. */
  readonly name: "RSS" | "live bytes";
}

export interface LiveCurves {
  readonly times: number[];
  /** By {@link Domain}, stacked: each includes the ones below it. */
  readonly stacked: number[][];
  readonly total: number;
}

/** `pid` null: the whole tree. */
export function memoryCurves(report: ReportDocument, pid: number | null): Curves {
  if (isUnknown(report.summary.imported, "rss")) {
    return { ...joined(report.series, "liveBytes", "pssBytes"), name: "live bytes" };
  }
  if (pid !== null) {
    const series = report.series.filter((one) => one.pid === pid);
    return joined(series, "rssBytes", "pssBytes");
  }
  const tree = report.series.filter((one) => hasReadings(one, "treeRssBytes"));
  if (tree.length > 0) {
    const root = tree.find((one) => one.pid === report.summary.target.pid) ?? longest(tree);
    return joined([root], "treeRssBytes", "treePssBytes");
  }
  return summed(report.series);
}

function hasReadings(series: MemorySeries, metric: Metric): boolean {
  return series.values.get(metric)?.some((value) => !Number.isNaN(value)) ?? false;
}

function longest(series: readonly MemorySeries[]): MemorySeries {
  return series.reduce((best, one) => (one.timesMs.length > best.timesMs.length ? one : best));
}

function joined(series: readonly MemorySeries[], rss: Metric, pss: Metric): Curves {
  const points: [number, number | null, number | null][] = [];
  for (const one of series) {
    for (let i = 0; i < one.timesMs.length; i++) {
      points.push([float64At(one.timesMs, i) / 1000, reading(one, rss, i), reading(one, pss, i)]);
    }
  }
  points.sort((a, b) => a[0] - b[0]);
  return {
    times: points.map((p) => p[0]),
    rss: points.map((p) => p[1]),
    pss: points.map((p) => p[2]),
    name: "RSS",
  };
}

/** The sum of each process's last reading, at every reading of any process. */
function summed(series: readonly MemorySeries[]): Curves {
  const readings = series.flatMap((one, which) =>
    Array.from(one.timesMs, (timeMs, i) => ({
      timeMs,
      which,
      value: reading(one, "rssBytes", i) ?? 0,
    })),
  );
  const ends = series.map((one, which) => ({
    timeMs: (one.timesMs.at(-1) ?? 0) + 0.5,
    which,
    value: 0,
  }));
  const lastMs = Math.max(0, ...readings.map((one) => one.timeMs));
  const steps = [...readings, ...ends.filter((end) => end.timeMs < lastMs)].sort(
    (a, b) => a.timeMs - b.timeMs,
  );
  const now = new Float64Array(series.length);
  let sum = 0;
  const times: number[] = [];
  const rss: number[] = [];
  for (const { timeMs, which, value } of steps) {
    sum += value - float64At(now, which);
    now[which] = value;
    if (times.at(-1) === timeMs / 1000) {
      rss[rss.length - 1] = sum;
    } else {
      times.push(timeMs / 1000);
      rss.push(sum);
    }
  }
  return { times, rss, pss: times.map(() => null), name: "RSS" };
}

function reading(series: MemorySeries, metric: Metric, i: number): number | null {
  const value = series.values.get(metric)?.[i];
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** Live bytes by allocator at each snapshot; `pid` null: all processes. */
export function liveCurves(
  tables: ProfileTables,
  snapshots: readonly ProfileSnapshot[],
  pid: number | null,
): LiveCurves {
  const domains = Object.values(Domain);
  const stacked = domains.map(() => new Float64Array(snapshots.length));
  snapshots.forEach(({ sites }, at) => {
    for (let row = 0; row < sites.length; row++) {
      if (pid !== null && tables.processes[uint16At(sites.process, row)]?.pid !== pid) {
        continue;
      }
      const own = uint8At(sites.domain, row);
      stacked.forEach((bytes, domain) => {
        if (domain >= own) {
          addAt(bytes, at, float64At(sites.liveBytes, row));
        }
      });
    }
  });
  return {
    times: snapshots.map((snapshot) => snapshot.timeMs / 1000),
    stacked: stacked.map((bytes) => [...bytes]),
    total: Math.max(0, ...(stacked.at(-1) ?? [])),
  };
}

/** The index of the snapshot nearest to a time. */
export function nearestSnapshot(snapshots: readonly ProfileSnapshot[], timeMs: number): number {
  let best = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const [i, snapshot] of snapshots.entries()) {
    const distance = Math.abs(snapshot.timeMs - timeMs);
    if (distance <= least) {
      best = i;
      least = distance;
    }
  }
  return best;
}

/**
 * The snapshot to show first: the last, or the one with the most live bytes if most memory was freed before the
 * end (programs often clean up before they exit).
 */
export function informativeSnapshot(snapshots: readonly ProfileSnapshot[]): number {
  const live = snapshots.map(({ sites }) => sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0));
  const most = Math.max(0, ...live);
  const last = Math.max(snapshots.length - 1, 0);
  return (live[last] ?? 0) >= most / 2 ? last : live.indexOf(most);
}
