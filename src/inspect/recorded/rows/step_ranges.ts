/**
 * Host memory by the step of a training loop that allocated it: `summary --by step`. A snapshot has live bytes
 * by slices of allocation time, and the recording's events show when each step began:
 *
 *     slices       |       0       |       1       |       2       |
 *     steps        | 1 | 2 | 3 |  4 . | 5 | 6 |  7 . | 8 | 9 | 10  |
 *     ranges         1 - 4            5 - 7           8 - 10
 *
 * A range has the steps that begin in one slice. A step that continues from the previous slice gets a part of
 * the slice's bytes proportional to its time.
 */
import { float64At, uint8At, uint16At, uint32At } from "../../../model/base/columns.js";
import type { Bytes, Pid, TimeMs } from "../../../model/base/units.js";
import type { StepRangeJson, StepsJson } from "../../../model/documents/documents.js";
import type { Profile } from "../../../model/profile/profile.js";
import { rowColumn } from "../../../model/profile/row_filter.js";
import type { TimelineEvent } from "../../../model/profile/series.js";

/** Least number of ranges of a loop for judging its course. */
const FEWEST_RANGES = 4;

/** null if the program marks no steps. @internal */
export function stepsOf(events: readonly TimelineEvent[], snapshot: Profile): StepsJson | null {
  const ranges = loopsIn(events, snapshot).flatMap((loop) => rangesOf(loop, snapshot));
  return ranges.length === 0 ? null : { ranges, left: leftPerStep(ranges) };
}

/** The steps with one name in one process. */
interface Loop {
  readonly name: string;
  readonly pid: Pid;
  /** Ascending. */
  readonly steps: { readonly beginMs: TimeMs; endMs: TimeMs; readonly number: number }[];
}

/** Steps that began before the snapshot. A step without a recorded end lasts until the next step or the snapshot. */
function loopsIn(events: readonly TimelineEvent[], { timeMs: untilMs }: Profile): Loop[] {
  const loops = new Map<string, Loop>();
  for (const { kind, pid, detail: name, value: number = 0, timeMs } of events) {
    const key = `${pid} ${name}`;
    if (kind === "step-begin" && timeMs <= untilMs) {
      const loop = loops.get(key) ?? { name, pid, steps: [] };
      const before = loop.steps.at(-1);
      if (before !== undefined) {
        before.endMs = Math.min(before.endMs, timeMs);
      }
      loop.steps.push({ beginMs: timeMs, endMs: untilMs, number });
      loops.set(key, loop);
    } else if (kind === "step-end") {
      const step = loops.get(key)?.steps.findLast((one) => one.number === number);
      if (step !== undefined) {
        step.endMs = Math.min(step.endMs, timeMs);
      }
    }
  }
  return [...loops.values()];
}

interface Range {
  first: number;
  last: number;
  live: Bytes;
  variance: number;
  readonly sites: Set<number>;
}

function rangesOf(loop: Loop, snapshot: Profile): StepRangeJson[] {
  const slices = slicesOf(loop, snapshot);
  const ranges: Range[] = [];
  let lowerMs = Math.min(loop.steps[0]?.beginMs ?? 0, snapshot.cohorts[0] ?? 0);
  snapshot.cohorts.forEach((upperMs, at) => {
    const isLast = at === snapshot.cohorts.length - 1;
    const endMs = isLast ? snapshot.timeMs : upperMs;
    const begun = loop.steps.filter(
      ({ beginMs }) => beginMs < endMs + Number(isLast) && (at === 0 || beginMs >= lowerMs),
    );
    const slice = slices[at] as Slice;
    const before = ranges.at(-1);
    const [first] = begun;
    if (first === undefined) {
      addTo(before, slice, 1);
    } else {
      const running = loop.steps.findLast(({ beginMs }) => beginMs < first.beginMs);
      const earlierMs = before === undefined ? 0 : Math.max(0, (running?.endMs ?? 0) - lowerMs);
      const own = Math.max(1, endMs - first.beginMs);
      const range = { first: first.number, last: begun.at(-1)?.number ?? 0, ...nothing() };
      addTo(before, slice, earlierMs / (earlierMs + own));
      addTo(range, slice, own / (earlierMs + own));
      ranges.push(range);
    }
    lowerMs = upperMs;
  });
  return ranges.map(({ first, last, live, variance, sites }, at) => {
    // Steps with lost events are counted by their numbers.
    const through = Math.max(last, (ranges[at + 1]?.first ?? last + 1) - 1);
    const count = Math.max(1, through - first + 1);
    const error = Math.sqrt(variance);
    return {
      name: loop.name,
      pid: loop.pid,
      firstStep: first,
      lastStep: through,
      liveBytes: live,
      standardErrorBytes: error,
      bytesPerStep: live / count,
      standardErrorPerStep: error / count,
      sites: sites.size,
    };
  });
}

/** Live bytes of a loop's allocations, by slice of allocation time. */
interface Slice {
  live: Bytes;
  variance: number;
  readonly sites: Set<number>;
}

function nothing(): Slice {
  return { live: 0, variance: 0, sites: new Set() };
}

function addTo(range: Slice | undefined, { live, variance, sites }: Slice, part: number): void {
  if (range === undefined || part <= 0) {
    return;
  }
  range.live += live * part;
  range.variance += variance * part;
  for (const site of sites) {
    range.sites.add(site);
  }
}

/** Uses the rows with the step's label. A step without a block sets no label; then all rows of the process count. */
function slicesOf({ name, pid }: Loop, snapshot: Profile): Slice[] {
  const { sites, cohorts, processes } = snapshot;
  const names = rowColumn(snapshot, "step").names;
  const own = Array.from({ length: sites.length }, (_, row) => row).filter(
    (row) => processes[uint16At(sites.process, row)]?.pid === pid,
  );
  const isLabelled = names.includes(name);
  const rows = isLabelled ? own.filter((row) => names[uint32At(sites.label, row)] === name) : own;
  const slices = cohorts.map(nothing);
  for (const row of rows) {
    const live = float64At(sites.liveBytes, row);
    for (const [at, slice] of slices.entries()) {
      const bytes = float64At(sites.cohortBytes, row * cohorts.length + at);
      if (bytes > 0 && live > 0) {
        slice.live += bytes;
        slice.variance += (float64At(sites.liveVariance, row) * bytes) / live;
        slice.sites.add(uint32At(sites.stack, row) * 4 + uint8At(sites.domain, row));
      }
    }
  }
  return slices;
}

/**
 * The bytes that each step leaves behind: the median of the ranges after the first third, which is start-up,
 * and without the last range, whose step may still be running. A cache of the latest steps leaves nothing in
 * the older half, so its median is 0.
 */
function leftPerStep(ranges: readonly StepRangeJson[]): StepsJson["left"] {
  const loops = new Map<string, StepRangeJson[]>();
  for (const range of ranges) {
    const key = `${range.pid} ${range.name}`;
    loops.set(key, [...(loops.get(key) ?? []), range]);
  }
  return [...loops.values()].flatMap((own) => {
    const settled = own.slice(Math.ceil(own.length / 3), -1);
    const [first, last] = [settled[0], settled.at(-1)];
    if (own.length < FEWEST_RANGES || first === undefined || last === undefined) {
      return [];
    }
    const steps = last.lastStep - first.firstStep + 1;
    const variance = settled.reduce((sum, range) => sum + range.standardErrorBytes ** 2, 0);
    const sorted = settled.map(({ bytesPerStep }) => bytesPerStep).sort((a, b) => a - b);
    const bytesPerStep = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
    const standardErrorBytes = Math.sqrt(variance) / steps;
    return [
      {
        name: first.name,
        pid: first.pid,
        firstStep: first.firstStep,
        lastStep: last.lastStep,
        bytesPerStep,
        standardErrorBytes,
        isNoise: bytesPerStep <= 2 * standardErrorBytes,
      },
    ];
  });
}
