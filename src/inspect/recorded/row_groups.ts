/** Live bytes by thread, label, process or rank, and how fast each group grows: `summary --by thread`. */
import { assessGrowth } from "../../diagnose/index.js";
import { float64At, uint8At, uint32At } from "../../model/base/columns.js";
import { interval95 } from "../../model/base/interval.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { RowGroupJson } from "../../model/documents/documents.js";
import type { Profile, SiteTable } from "../../model/profile/profile.js";
import { groupRows, rowColumn } from "../../model/profile/row_filter.js";
import type { Recording } from "../../recording/types.js";
import { chooseLooks } from "./evidence.js";

const MS_PER_HOUR = 3_600_000;
const DOMAINS = 4;

/** The groups of a look's rows, and how they stood at the peak. @internal */
export interface GroupedProfiles {
  readonly now: Profile;
  readonly peak: Profile;
}

/** One for each value of the key that occurs, the most live bytes first. @internal */
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
  const courses = liveCourses(recording, by);
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
    .sort((a, b) => b.liveBytes - a.liveBytes || b.allocatedBytes - a.allocatedBytes);
}

/** Two recordings have no pid in common: their processes are compared by their commands. */
function pidOf(now: Profile, by: string, group: string): Pick<RowGroupJson, "pid"> {
  const pid = by === "process" ? Number(group.split(" ", 1)[0]) : Number.NaN;
  return now.processes.some((process) => process.pid === pid) ? { pid } : {};
}

interface Courses {
  readonly times: readonly TimeMs[];
  readonly byGroup: ReadonlyMap<string, readonly Bytes[]>;
}

/** Live bytes of each group at looks of the program at work. */
function liveCourses(recording: Recording, by: string): Courses {
  const times: TimeMs[] = [];
  const byGroup = new Map<string, Bytes[]>();
  for (const index of chooseLooks(recording)) {
    const profile = recording.profileOf(index);
    for (const [group, rows] of groupRows(rowColumn(profile, by), profile.sites)) {
      const course = byGroup.get(group) ?? [];
      course[times.length] = sumOf(profile.sites, rows, "liveBytes");
      byGroup.set(group, course);
    }
    times.push(profile.timeMs);
  }
  const whole = [...byGroup].map(
    ([group, course]) => [group, times.map((_, look) => course[look] ?? 0)] as const,
  );
  return { times, byGroup: new Map(whole) };
}

/** Nothing where the looks are too few to measure it: the rule of the verdict. */
function growthOf(
  times: readonly TimeMs[],
  values: readonly Bytes[],
): Pick<RowGroupJson, "growthBytesPerHour" | "growthLowBytesPerHour" | "growthHighBytesPerHour"> {
  const { shape, slope, low, high } = assessGrowth({ times, values });
  return shape === "short"
    ? {}
    : {
        growthBytesPerHour: slope * MS_PER_HOUR,
        growthLowBytesPerHour: low * MS_PER_HOUR,
        growthHighBytesPerHour: high * MS_PER_HOUR,
      };
}

type FigureName = "liveBytes" | "liveVariance" | "allocatedBytes" | "allocatedVariance";

function sumOf(sites: SiteTable, rows: readonly number[], figure: FigureName): number {
  const column = sites[figure];
  return rows.reduce((total, row) => total + float64At(column, row), 0);
}

function sum(column: Float64Array): number {
  return column.reduce((total, value) => total + value, 0);
}

/** Stacks, apart by allocator, of which something lives. */
function countSites(sites: SiteTable, rows: readonly number[]): number {
  const live = rows.filter((row) => float64At(sites.liveBytes, row) > 0);
  return new Set(
    live.map((row) => uint32At(sites.stack, row) * DOMAINS + uint8At(sites.domain, row)),
  ).size;
}
