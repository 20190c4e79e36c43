/**
 * Removes what processes of one version have in common from each of them, so that what one instance does alone is left:
 *
 *   RSS of a process = its own level + share x course over time + course over age + the rest
 *                                             load               warm-up, caches
 *
 * Shares are fitted to changes between bins, which growth hardly moves. Both courses are medians over the processes, found in turns, so a minority that leaks does not bend them. Restarts at
 * different times separate time from age; where all processes started together, either course may take up both.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import { binnedMedians, reorderedMedian } from "../series/medians.js";
import type { Unloaded } from "./load_removal.js";

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
  const overTime = alongCourse(courses, byTime, ({ firstTime }) => firstTime);
  const overAge = alongCourse(courses, byAge, ({ firstAge }) => firstAge);
  const both = { byTime, byAge, rests: new Float64Array(overTime.starts.at(-1) as number) };
  const offsets = new Float64Array(courses.length);
  for (let round = 0; round < ROUNDS; round++) {
    courses.forEach((course, at) => {
      offsets[at] = restOf(course, both);
    });
    refine(courses, offsets, both, overTime);
    refine(courses, offsets, both, overAge);
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
  courses: readonly Course[],
  offsets: Float64Array,
  { byTime, byAge, rests }: Both,
  along: Along,
): void {
  const next = along.starts.slice();
  courses.forEach((each, at) => {
    const { levels, firstTime, firstAge } = each;
    const shift = along.firstOf(each) - firstTime;
    const offset = offsets[at] as number;
    for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
      const level = levels[bin] as number;
      if (!Number.isNaN(level)) {
        const age = bin - firstTime + firstAge;
        const place = next[bin + shift] as number;
        next[bin + shift] = place + 1;
        rests[place] = level - offset - (byTime[bin] as number) - (byAge[age] as number);
      }
    }
  });
  for (let bin = 0; bin < along.course.length; bin++) {
    const [start, end] = [along.starts[bin] as number, along.starts[bin + 1] as number];
    if (end > start) {
      along.course[bin] = (along.course[bin] as number) + reorderedMedian(rests, start, end);
    }
  }
}

/** Where the rests of each bin of a course begin, so that they need no lists. */
function alongCourse(
  courses: readonly Course[],
  course: Float64Array,
  firstOf: (course: Course) => number,
): Along {
  const starts = new Int32Array(course.length + 1);
  for (const each of courses) {
    const { levels, firstTime } = each;
    const shift = firstOf(each) - firstTime;
    for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
      if (!Number.isNaN(levels[bin])) {
        starts[bin + shift + 1] = (starts[bin + shift + 1] as number) + 1;
      }
    }
  }
  for (let bin = 1; bin < starts.length; bin++) {
    starts[bin] = (starts[bin] as number) + (starts[bin - 1] as number);
  }
  return { course, firstOf, starts };
}
