/**
 * Instances whose memory is unlike that of their siblings over a window, whatever the reason. Unlike the ones that
 * odd_instances.ts accuses, they need not grow: such an instance is a place to look at, not a verdict.
 */
import type { Bytes } from "../../../model/base/units.js";
import { median } from "../../series/trend.js";

/** How many times as far as siblings usually are, and at least this share of their level and so many bytes. */
const FAR = 5;
const LEAST_SHARE = 0.1;
const LEAST_BYTES: Bytes = 8 << 20;
const FEWEST_SIBLINGS = 4;
const FEWEST_STEPS = 3;
/** The difference of this many siblings may be half of the usual by chance. */
const FEW = 4;
/** Odd ones are a minority. */
const MOST_SHARE = 0.4;
/** What lasted only for a part of the window counts at its end. */
const LATE_SHARE = 0.25;

/** Memory by step; null: it did not report. */
export type MemoryCourse = readonly (Bytes | null)[];

export interface OddCourse {
  /** Its place among the siblings. */
  readonly index: number;
  /** From the median of the siblings. */
  readonly differenceBytes: Bytes;
  /** Most that reported at the same time. */
  readonly siblings: number;
}

/** `courses`: of the instances of one version, with the same steps. */
export function oddMemory(courses: readonly MemoryCourse[]): OddCourse[] {
  const steps = courses[0]?.length ?? 0;
  const reporting = Array.from({ length: steps }, (_, step) =>
    courses.flatMap((course) => course[step] ?? []),
  );
  const medians = reporting.map((values) =>
    values.length > FEWEST_SIBLINGS ? median(values) : null,
  );
  const own = courses.flatMap((course, index) => {
    const differences = course.flatMap((value, step) => {
      const middle = medians[step];
      return value === null || middle == null ? [] : [value - middle];
    });
    const late = differences.slice(-Math.ceil(differences.length * LATE_SHARE));
    return differences.length < FEWEST_STEPS
      ? []
      : [{ index, whole: median(differences), late: median(late) }];
  });
  if (own.length <= FEWEST_SIBLINGS) {
    return [];
  }
  const level = median(medians.flatMap((middle) => middle ?? []));
  const limitOf = (differences: readonly number[]) =>
    Math.max(FAR * spreadOf(differences), LEAST_SHARE * level, LEAST_BYTES);
  const wholeLimit = limitOf(own.map(({ whole }) => whole));
  const lateLimit = limitOf(own.map(({ late }) => late));
  const siblings = Math.max(...reporting.map((values) => values.length)) - 1;
  const odd = own.flatMap(({ index, whole, late }) => {
    const isOdd = Math.abs(whole) > wholeLimit || Math.abs(late) > lateLimit;
    const differenceBytes = Math.abs(late) > Math.abs(whole) ? late : whole;
    return isOdd ? [{ index, differenceBytes, siblings }] : [];
  });
  return odd.length > MOST_SHARE * own.length ? [] : odd;
}

/** The usual distance from the median; of a few, it may be small by chance. */
function spreadOf(differences: readonly number[]): number {
  return 1.4826 * median(differences.map(Math.abs)) * (1 + FEW / differences.length);
}
