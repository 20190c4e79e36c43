/** Live bytes by thread, label, process or rank, and how fast each group grows: `summary --by thread`. */
import { assessGrowth } from "../../diagnose/index.js";
import { float64At, uint8At, uint32At } from "../../model/base/columns.js";
import { interval95 } from "../../model/base/interval.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { RowGroupJson } from "../../model/documents/documents.js";
import type { Profile, SiteTable } from "../../model/profile/profile.js";
import { groupRows, rowColumn } from "../../model/profile/row_filter.js";
import type { Recording } from "../../recording/types.js";
import { chooseSnapshots } from "./evidence.js";
import { type Figures, varianceBetween } from "./rows/variance_between.js";

const MS_PER_HOUR = 3_600_000;
const DOMAINS = 4;
/** Least time between two snapshots; changes in a shorter time are not growth. */
const SHORTEST_SPAN_MS: Millis = 5000;

/** The groups of a snapshot's rows, and their values at the peak. @internal */
export interface GroupedProfiles {
  readonly now: Profile;
  readonly peak: Profile;
}

/** One for each value of the key, most live bytes first. @internal */
export function rowGroups(
  recording: Recording,
  { now, peak }: GroupedProfiles,
  by: string,
): RowGroupJson[] {
  const column = rowColumn(now, by);
  const [present, past] = [
    groupRows(column, now.sites),
    groupRows(rowColumn(peak, by), peak.sites),
  ];
  const courses = coursesOf(recording, by);
  const total = sum(now.sites.liveBytes);
  return [...new Set([...present.keys(), ...past.keys()])]
    .map((group) => {
      const rows = present.get(group) ?? [];
      const atPeak = past.get(group) ?? [];
      const of = (figure: FigureName) => sumOf(now.sites, rows, figure);
      const liveBytes = of("liveBytes");
      const error = Math.sqrt(of("liveVariance"));
      return {
        group,
        ...pidOf(now, by, group),
        liveBytes,
        standardErrorBytes: error,
        interval95Bytes: interval95(liveBytes, error),
        share: total > 0 ? liveBytes / total : 0,
        liveBytesAtPeak: sumOf(peak.sites, atPeak, "liveBytes"),
        allocatedBytes: of("allocatedBytes"),
        standardErrorAllocatedBytes: Math.sqrt(of("allocatedVariance")),
        sites: countSites(now.sites, rows),
        ...growthOf(courses.times, courses.byGroup.get(group) ?? []),
      };
    })
    .filter((group) => group.liveBytes + group.liveBytesAtPeak + group.allocatedBytes > 0)
    .sort(
      (a, b) =>
        b.liveBytes - a.liveBytes ||
        b.liveBytesAtPeak - a.liveBytesAtPeak ||
        b.allocatedBytes - a.allocatedBytes,
    );
}

/** Two recordings have different pids, so processes are compared by their commands. */
function pidOf(now: Profile, by: string, group: string): Pick<RowGroupJson, "pid"> {
  const pid = by === "process" ? Number(group.split(" ", 1)[0]) : Number.NaN;
  return now.processes.some((process) => process.pid === pid) ? { pid } : {};
}

interface Courses {
  readonly times: readonly TimeMs[];
  readonly byGroup: ReadonlyMap<string, readonly Figures[]>;
}

const NOTHING: Figures = { live: 0, variance: 0, allocated: 0, allocatedVariance: 0 };

/** The figures of each group at snapshots of the program at work. */
function coursesOf(recording: Recording, by: string): Courses {
  const times: TimeMs[] = [];
  const byGroup = new Map<string, Figures[]>();
  for (const index of chooseSnapshots(recording)) {
    const profile = recording.profileOf(index);
    for (const [group, rows] of groupRows(rowColumn(profile, by), profile.sites)) {
      const course = byGroup.get(group) ?? [];
      course[times.length] = {
        live: sumOf(profile.sites, rows, "liveBytes"),
        variance: sumOf(profile.sites, rows, "liveVariance"),
        allocated: sumOf(profile.sites, rows, "allocatedBytes"),
        allocatedVariance: sumOf(profile.sites, rows, "allocatedVariance"),
      };
      byGroup.set(group, course);
    }
    times.push(profile.timeMs);
  }
  const whole = [...byGroup].map(
    ([group, course]) => [group, times.map((_, snapshot) => course[snapshot] ?? NOTHING)] as const,
  );
  return { times, byGroup: new Map(whole) };
}

/**
 * Growth as for a verdict if there are enough snapshots; otherwise the difference between two snapshots, with
 * the sampling error. Nothing if these are too close in time.
 */
function growthOf(
  times: readonly TimeMs[],
  figures: readonly Figures[],
): Pick<RowGroupJson, "growthBytesPerHour" | "growthLowBytesPerHour" | "growthHighBytesPerHour"> {
  if ((times.at(-1) ?? 0) - (times[0] ?? 0) < SHORTEST_SPAN_MS) {
    return {};
  }
  const measured = assessGrowth({ times, values: figures.map(({ live }) => live) });
  const growth = measured.shape === "short" ? betweenTwo(times, figures) : measured;
  return growth === null
    ? {}
    : {
        growthBytesPerHour: growth.slope * MS_PER_HOUR,
        growthLowBytesPerHour: growth.low * MS_PER_HOUR,
        growthHighBytesPerHour: growth.high * MS_PER_HOUR,
      };
}

/** From the first snapshot after a third of the time to the last. */
function betweenTwo(
  times: readonly TimeMs[],
  figures: readonly Figures[],
): { readonly slope: number; readonly low: number; readonly high: number } | null {
  const [startMs = 0, endMs = 0] = [times[0], times.at(-1)];
  const first = times.findIndex((time) => time >= startMs + (endMs - startMs) / 3);
  const [was, is] = [figures[first], figures.at(-1)];
  const spanMs = endMs - (times[first] ?? endMs);
  if (was === undefined || is === undefined || spanMs < SHORTEST_SPAN_MS) {
    return null;
  }
  const slope = (is.live - was.live) / spanMs;
  const variance = Math.min(was.variance + is.variance, varianceBetween(was, is));
  const margin = (1.96 * Math.sqrt(variance)) / spanMs;
  return { slope, low: slope - margin, high: slope + margin };
}

type FigureName = "liveBytes" | "liveVariance" | "allocatedBytes" | "allocatedVariance";

function sumOf(sites: SiteTable, rows: readonly number[], figure: FigureName): number {
  const column = sites[figure];
  return rows.reduce((total, row) => total + float64At(column, row), 0);
}

function sum(column: Float64Array): number {
  return column.reduce((total, value) => total + value, 0);
}

/** Stacks with live bytes, separately by allocator. */
function countSites(sites: SiteTable, rows: readonly number[]): number {
  const live = rows.filter((row) => float64At(sites.liveBytes, row) > 0);
  return new Set(
    live.map((row) => uint32At(sites.stack, row) * DOMAINS + uint8At(sites.domain, row)),
  ).size;
}
