/**
 * What the agent saw of one life, by function: lines move from version to version, so these are compared by the name of their
 * function and its file.
 */
import type { Bytes, Millis } from "../../../model/base/units.js";
import type { FrameJson } from "../../../model/documents/documents.js";
import { ownFrame } from "../../../model/documents/own_code.js";
import { median } from "../../series/trend.js";
import type { FleetProcess } from "../curves/fleet_evidence.js";
import { type Unloaded, workAt } from "../curves/load_removal.js";

/** The part of a life whose end is compared with its start, and the fewest readings of it. */
const EARLY = 1 / 3;
const LATE = 2 / 3;
/** What it gained from the middle of a life to the end, as a share of what it gained before: less is a line that bends. */
const SLOWED = 0.5;
const FEWEST_READINGS = 6;
/** A line that rises by more than this multiple of what it did before does more than that. */
const ALIKE = 3.5;
/** The least length of earlier lives as a share of a line's course. */
const LEAST_LENGTH = 0.5;
/** A shorter life shows what a line usually holds. */
export const LEAST_USUAL_MS: Millis = 20 * 3_600_000;
/** Of these, the share that has to have levelled off. */
const MOST_RISING = 0.5;
/** A shorter life shows no rate. */
const LEAST_RATE_MS: Millis = 2 * 3_600_000;
/** Whose median is a level. */
const LEVEL_READINGS = 3;

/** Live bytes of one function in one life, at the ages of its life. */
export interface HeldByFunction {
  readonly values: Float64Array;
  /** Its line with most bytes at the end. */
  readonly line: FrameJson;
  readonly stack: readonly FrameJson[];
  readonly lastOfLine: Bytes;
}

/** What the agent saw of one life. */
export interface SeenLife {
  readonly process: FleetProcess;
  /** When it looked. */
  readonly ages: readonly Millis[];
  /** Requests until then; null: unknown. */
  readonly work: readonly number[] | null;
  readonly byFunction: ReadonlyMap<string, HeldByFunction>;
}

/** Of the processes that the agent watched. */
export function seenLives(processes: readonly Unloaded[]): SeenLife[] {
  return processes.flatMap((each) => (each.process.sites.length === 0 ? [] : [seenOf(each)]));
}

/**
 * Whether the function of a line rose nearly as far in earlier lives, or came to hold as much, and then levelled off or gave it
 * back: it is a cache or load. `lengthMs`: of the course in which the line rose to `level`.
 */
export function didAlikeBefore(
  line: FrameJson,
  { rise, level, lengthMs }: Risen,
  earlier: readonly SeenLife[],
): boolean {
  const name = functionOf(line);
  const courses = earlier.flatMap(({ ages, byFunction }) => {
    const values = byFunction.get(name)?.values;
    const length = (ages.at(-1) ?? 0) - (ages[0] ?? 0);
    return values === undefined ||
      values.length < FEWEST_READINGS ||
      length < Math.min(LEAST_LENGTH * lengthMs, LEAST_USUAL_MS)
      ? []
      : [{ length, ...courseOf(ages, values) }];
  });
  const areLevel = (all: typeof courses) =>
    all.length > 0 && all.filter(({ isLevel }) => isLevel).length >= MOST_RISING * all.length;
  const long = courses.filter(({ length }) => length >= LEAST_LENGTH * lengthMs);
  const medianOf = (all: typeof courses, key: "range" | "highest") =>
    median(all.flatMap((each) => (each.isLevel ? [each[key]] : [])));
  return (
    (areLevel(long) && ALIKE * medianOf(long, "range") >= rise) ||
    (areLevel(courses) && medianOf(courses, "highest") >= level)
  );
}

/** How fast the function of a line grew in these lives, bytes per ms; 0 if they did not have it. null: none was watched for long enough. */
export function rateSeen(line: FrameJson, lives: readonly SeenLife[]): number | null {
  const name = functionOf(line);
  const rates = lives.flatMap(({ ages, byFunction }) => {
    const lengthMs = (ages.at(-1) ?? 0) - (ages[0] ?? 0);
    const values = byFunction.get(name)?.values ?? new Float64Array(ages.length);
    const [start, end] = [values.slice(0, LEVEL_READINGS), values.slice(-LEVEL_READINGS)].map(
      (part) => median([...part]),
    ) as [Bytes, Bytes];
    return lengthMs < LEAST_RATE_MS || ages.length < FEWEST_READINGS
      ? []
      : [(end - start) / lengthMs];
  });
  return rates.length === 0 ? null : median(rates);
}

export interface Risen {
  readonly rise: Bytes;
  readonly level: Bytes;
  readonly lengthMs: Millis;
}

/** How far it rose or fell, and whether the end is no higher than what came before, or it rose there much more slowly. */
function courseOf(ages: readonly Millis[], values: Float64Array) {
  const [first, last] = [ages[0] as number, ages.at(-1) as number];
  const placeAt = (share: number) => ages.findIndex((age) => age >= first + share * (last - first));
  const [middle, late] = [placeAt(EARLY), placeAt(LATE)];
  const most = Math.max(...values.subarray(0, late));
  const highest = Math.max(most, ...values.subarray(late));
  const range = highest - Math.min(...values);
  const [start, then, end] = [
    values.subarray(0, middle),
    values.subarray(middle, late),
    values.subarray(late),
  ].map(median) as [Bytes, Bytes, Bytes];
  return { range, highest, isLevel: end <= most || end - then < SLOWED * (then - start) };
}

function seenOf(unloaded: Unloaded): SeenLife {
  const { process } = unloaded;
  const { sites, startedMs } = process;
  const times = [...new Set(sites.flatMap(({ live }) => live.times))].sort((a, b) => a - b);
  const placeOf = new Map(times.map((time, at) => [time, at]));
  const byFunction = new Map<string, HeldByFunction>();
  for (const { stack, live } of sites) {
    const line = ownFrame(stack) ?? stack[0];
    if (line === undefined) {
      continue;
    }
    const name = functionOf(line);
    const known = byFunction.get(name);
    const values = known?.values ?? new Float64Array(times.length);
    live.times.forEach((time, at) => {
      const place = placeOf.get(time) as number;
      values[place] = (values[place] as number) + (live.values[at] as number);
    });
    const lastOfLine = live.values.at(-1) ?? 0;
    if (known === undefined || lastOfLine > known.lastOfLine) {
      byFunction.set(name, { values, line, stack, lastOfLine });
    }
  }
  const ages = times.map((time) => time - startedMs);
  return { process, ages, work: workAt(times, unloaded), byFunction };
}

/** Without the folders above the file's own, which may name the release. */
export function functionOf({ file, function: name }: FrameJson): string {
  return `${file.split(/[/\\]/).slice(-2).join("/")}\n${name}`;
}
