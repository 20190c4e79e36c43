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
import { binnedMedians, medianOf } from "../series/medians.js";
import type { Unloaded } from "./load_removal.js";

const BINS = 192;
const LEAST_BIN_MS: Millis = 60_000;
const ROUNDS = 5;
const MOST_SHARE = 4;

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
  const offsets = new Float64Array(courses.length);
  for (let round = 0; round < ROUNDS; round++) {
    courses.forEach((course, at) => {
      const rests = restsOf(course, byTime, byAge);
      offsets[at] = rests.length === 0 ? 0 : medianOf(rests, 0, rests.length);
    });
    refine(courses, offsets, byTime, byAge, byTime, ({ firstTime }) => firstTime);
    refine(courses, offsets, byTime, byAge, byAge, ({ firstAge }) => firstAge);
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

/** Levels of a process without both courses. */
function restsOf(
  { levels, firstTime, firstAge }: Course,
  byTime: Float64Array,
  byAge: Float64Array,
): number[] {
  const rests: number[] = [];
  for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
    const level = levels[bin] as number;
    if (!Number.isNaN(level)) {
      const age = bin - firstTime + firstAge;
      rests.push(level - (byTime[bin] as number) - (byAge[age] as number));
    }
  }
  return rests;
}

/** Adds to one course the median of what is left at each of its bins. */
function refine(
  courses: readonly Course[],
  offsets: Float64Array,
  byTime: Float64Array,
  byAge: Float64Array,
  course: Float64Array,
  firstOf: (course: Course) => number,
): void {
  const rests: number[][] = Array.from(course, () => []);
  courses.forEach((each, at) => {
    const { levels, firstTime, firstAge } = each;
    const shift = firstOf(each) - firstTime;
    for (let bin = Math.max(0, firstTime); bin < levels.length; bin++) {
      const level = levels[bin] as number;
      if (!Number.isNaN(level)) {
        const age = bin - firstTime + firstAge;
        const rest =
          level - (offsets[at] as number) - (byTime[bin] as number) - (byAge[age] as number);
        rests[bin + shift]?.push(rest);
      }
    }
  });
  rests.forEach((at, bin) => {
    if (at.length > 0) {
      course[bin] = (course[bin] as number) + medianOf(at, 0, at.length);
    }
  });
}
