/**
 * Removes what processes of one version have in common from each of them, so that what one instance does alone is left:
 *
 *   RSS of a process = its own level + share x course over time + course over age + the rest
 *                                             load               warm-up, caches
 *
 * Shares are fitted to changes between bins, which growth hardly moves. Both courses are medians over the instances, found in
 * turns, so a minority that leaks does not bend them, however often it is restarted: an instance counts once in each bin, with the
 * mean of its lives. Restarts at different times separate time from age; where all processes started together, either course
 * may take up both.
 */
import type { Millis, TimeMs } from "../../../model/base/units.js";
import { binnedMedians, reorderedMedian } from "../../series/medians.js";
import type { Unloaded } from "../curves/load_removal.js";

const BINS = 192;
const LEAST_BIN_MS: Millis = 60_000;
const ROUNDS = 5;
const MOST_SHARE = 4;

interface Both {
  readonly byTime: Float64Array;
  readonly byAge: Float64Array;
  /** Room for what is left of all readings. */
  readonly rests: Float64Array;
}

/** One of both, and where what is left at each of its bins lies in `rests`. */
interface Along {
  readonly course: Float64Array;
  readonly firstOf: (course: Course) => number;
  readonly starts: Int32Array;
}

interface Course {
  readonly levels: Float64Array;
  readonly firstTime: number;
  readonly firstAge: number;
}

/** The lives of each instance. */
type Instances = readonly (readonly { readonly course: Course; readonly at: number }[])[];

/** In a window, by bins of it. The mean levels stay; requests are left out. */
export function withoutSiblings(
  processes: readonly Unloaded[],
  { startMs, endMs }: { readonly startMs: TimeMs; readonly endMs: TimeMs },
): readonly Unloaded[] {
  const binMs = Math.max(LEAST_BIN_MS, (endMs - startMs) / BINS);
  const courses = processes.map(({ process, rss }): Course => {
    const levels = binnedMedians(rss, { fromMs: startMs, binMs }, { startMs, endMs });
    const firstTime = levels.findIndex((level) => !Number.isNaN(level));
    // A clock that was set may date a reading before the start.
    const startBin = Math.min(firstTime, Math.floor((process.startedMs - startMs) / binMs));
    return { levels, firstTime, firstAge: firstTime - Math.max(startBin, -BINS) };
  });
  const byTime = new Float64Array(BINS + 1);
  const byAge = new Float64Array(2 * BINS + 2);
  const instances = byInstance(processes, courses);
  const overTime = alongCourse(instances, byTime, ({ firstTime }) => firstTime);
  const overAge = alongCourse(instances, byAge, ({ firstAge }) => firstAge);
  const both = {
    byTime,
    byAge,
    rests: new Float64Array(
      Math.max(BINS + 1, overTime.starts.at(-1) as number, overAge.starts.at(-1) as number),
    ),
  };
  const offsets = new Float64Array(courses.length);
  for (let round = 0; round < ROUNDS; round++) {
    courses.forEach((course, at) => {
      offsets[at] = restOf(course, both);
    });
    refine(instances, offsets, both, overTime);
    refine(instances, offsets, both, overAge);
  }
  const shares = sharesOf(processes, courses, byTime, byAge);
  return processes.map(({ process }, at) => {
    const { levels, firstTime, firstAge } = courses[at] as Course;
    const share = shares.get(process.instance) ?? 1;
    const times: number[] = [];
    const values: number[] = [];
    for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
      const level = levels[bin] as number;
      if (!Number.isNaN(level)) {
        const age = bin - firstTime + firstAge;
        times.push(Math.max(process.startedMs, startMs + (bin + 0.5) * binMs));
        values.push(level - share * (byTime[bin] as number) - (byAge[age] as number));
      }
    }
    return { process, rss: { times, values }, work: null };
  });
}

function byInstance(processes: readonly Unloaded[], courses: readonly Course[]): Instances {
  const instances = new Map<string, { course: Course; at: number }[]>();
  courses.forEach((course, at) => {
    const { instance } = (processes[at] as Unloaded).process;
    const lives = instances.get(instance) ?? [];
    lives.push({ course, at });
    instances.set(instance, lives);
  });
  return [...instances.values()];
}

/** By instance: how strongly it follows the course over time. */
function sharesOf(
  processes: readonly Unloaded[],
  courses: readonly Course[],
  byTime: Float64Array,
  byAge: Float64Array,
): ReadonlyMap<string, number> {
  const sums = new Map<string, { products: number; squares: number }>();
  courses.forEach(({ levels, firstTime, firstAge }, at) => {
    const { instance } = (processes[at] as Unloaded).process;
    const sum = sums.get(instance) ?? { products: 0, squares: 0 };
    for (let bin = Math.max(1, firstTime + 1); bin < levels.length; bin++) {
      const age = bin - firstTime + firstAge;
      const aged = (byAge[age] as number) - (byAge[age - 1] as number);
      const change = (levels[bin] as number) - (levels[bin - 1] as number) - aged;
      const usual = (byTime[bin] as number) - (byTime[bin - 1] as number);
      if (!Number.isNaN(change)) {
        sum.products += usual * change;
        sum.squares += usual * usual;
      }
    }
    sums.set(instance, sum);
  });
  return new Map(
    [...sums].map(([instance, { products, squares }]) => [
      instance,
      squares > 0 ? Math.min(MOST_SHARE, Math.max(0, products / squares)) : 1,
    ]),
  );
}

/** The median level of a process without both courses; 0: no reading. */
function restOf({ levels, firstTime, firstAge }: Course, { byTime, byAge, rests }: Both): number {
  let count = 0;
  for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
    const level = levels[bin] as number;
    if (!Number.isNaN(level)) {
      const age = bin - firstTime + firstAge;
      rests[count++] = level - (byTime[bin] as number) - (byAge[age] as number);
    }
  }
  return count === 0 ? 0 : reorderedMedian(rests, 0, count);
}

/** Adds to one of both courses the median of what is left at each of its bins. */
function refine(
  instances: Instances,
  offsets: Float64Array,
  { byTime, byAge, rests }: Both,
  along: Along,
): void {
  const next = along.starts.slice(0, -1);
  const sums = new Float64Array(along.course.length);
  const counts = new Int32Array(along.course.length);
  for (const lives of instances) {
    sums.fill(0);
    counts.fill(0);
    for (const { course, at } of lives) {
      const { levels, firstTime, firstAge } = course;
      const shift = along.firstOf(course) - firstTime;
      const offset = offsets[at] as number;
      for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
        const level = levels[bin] as number;
        if (!Number.isNaN(level)) {
          const age = bin - firstTime + firstAge;
          const rest = level - offset - (byTime[bin] as number) - (byAge[age] as number);
          sums[bin + shift] = (sums[bin + shift] as number) + rest;
          counts[bin + shift] = (counts[bin + shift] as number) + 1;
        }
      }
    }
    for (let bin = 0; bin < counts.length; bin++) {
      const count = counts[bin] as number;
      if (count > 0) {
        const place = next[bin] as number;
        next[bin] = place + 1;
        rests[place] = (sums[bin] as number) / count;
      }
    }
  }
  for (let bin = 0; bin < along.course.length; bin++) {
    const [start, end] = [along.starts[bin] as number, along.starts[bin + 1] as number];
    if (end > start) {
      along.course[bin] = (along.course[bin] as number) + reorderedMedian(rests, start, end);
    }
  }
}

/** Where the rests of each bin of a course begin, so that they need no lists. */
function alongCourse(
  instances: Instances,
  course: Float64Array,
  firstOf: (course: Course) => number,
): Along {
  const starts = new Int32Array(course.length + 1);
  for (const lives of instances) {
    const seen = new Uint8Array(course.length);
    for (const { course: each } of lives) {
      const { levels, firstTime } = each;
      const shift = firstOf(each) - firstTime;
      for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
        if (!Number.isNaN(levels[bin])) {
          seen[bin + shift] = 1;
        }
      }
    }
    seen.forEach((is, bin) => {
      starts[bin + 1] = (starts[bin + 1] as number) + is;
    });
  }
  for (let bin = 1; bin < starts.length; bin++) {
    starts[bin] = (starts[bin] as number) + (starts[bin - 1] as number);
  }
  return { course, firstOf, starts };
}
