/**
 * The moments of a trace at which the program's steps begin: from its own marks (profiler steps, Optimizer.step),
 * otherwise from the optimizer's allocations, otherwise from a site that recurs at regular intervals: in training,
 * the gradient of the loss, with which each backward pass begins.
 */
import { float64At, int32At, itemAt, uint32At } from "../../model/base/columns.js";
import type { GpuReplay } from "../../model/gpu/gpu_replay.js";
import {
  GpuAction,
  type GpuFrame,
  type GpuSnapshot,
  gpuFramesOf,
} from "../../model/gpu/gpu_snapshot.js";

export interface Steps {
  readonly from: "annotations" | "optimizer" | "pattern" | "";
  /** Ascending. */
  readonly moments: readonly number[];
}

const FEWEST = 4;
const LEAST_GIVEN_BACK = 0.5;
/** Share of the trace; allocations of one step do not live longer. */
const SOON = 0.25;
const NONE: Steps = { from: "", moments: [] };

export function stepsOf(snapshot: GpuSnapshot, replay: GpuReplay): Steps {
  const marked = fromAnnotations(snapshot, replay);
  if (marked.length >= FEWEST) {
    return { from: "annotations", moments: marked };
  }
  const optimizer = fromOptimizer(snapshot, replay);
  if (optimizer.length >= FEWEST) {
    return { from: "optimizer", moments: optimizer };
  }
  // Training has inner loops (over parameters, over layers) that recur as regularly as steps.
  if (trains(snapshot)) {
    const backward = fromBeat(snapshot, replay, isLossGradient);
    return backward.length >= FEWEST ? { from: "pattern", moments: backward } : NONE;
  }
  if (!givesBack(replay)) {
    return NONE;
  }
  const beat = fromBeat(snapshot, replay);
  return beat.length >= FEWEST ? { from: "pattern", moments: beat } : NONE;
}

/** Loading a model layer by layer is also regular, but frees nothing; real steps free most of what they allocate. */
function givesBack({ allocations: { start, end, length }, events }: GpuReplay): boolean {
  let soon = 0;
  for (let row = 0; row < length; row++) {
    soon +=
      int32At(end, row) < events && int32At(end, row) - int32At(start, row) <= events * SOON
        ? 1
        : 0;
  }
  return soon >= LEAST_GIVEN_BACK * length;
}

function trains({ frames, strings }: GpuSnapshot): boolean {
  const signs = new Set<number>();
  strings.forEach((text, id) => {
    if (
      /[/\\]torch[/\\]optim[/\\]|^torch::autograd::Engine|[/\\]torch[/\\]autograd[/\\]/.test(text)
    ) {
      signs.add(id);
    }
  });
  return (
    signs.size > 0 &&
    (frames.file.some((file) => signs.has(file)) || frames.function.some((name) => signs.has(name)))
  );
}

function fromAnnotations(snapshot: GpuSnapshot, replay: GpuReplay): number[] {
  const { annotations, strings, events } = snapshot;
  const times = new Map<string, number[]>();
  for (let row = 0; row < annotations.length; row++) {
    const name = itemAt(strings, uint32At(annotations.name, row));
    if (strings[uint32At(annotations.stage, row)] !== "START" || !/step/i.test(name)) {
      continue;
    }
    if (annotations.device[row] !== replay.device) {
      continue;
    }
    // "ProfilerStep#7": the same mark with a number.
    const mark = name.replace(/#\d+$/, "");
    times.set(mark, [...(times.get(mark) ?? []), float64At(annotations.timeUs, row)]);
  }
  const most = [...times.values()].sort((a, b) => b.length - a.length)[0] ?? [];
  const moments = most
    .sort((a, b) => a - b)
    .map((timeUs) => momentAt(events.timeUs, replay, timeUs));
  return distinct(moments.filter((moment) => moment > 0));
}

/** The first moment whose events are later than a time. */
function momentAt(timeUs: Float64Array, replay: GpuReplay, wanted: number): number {
  let low = 0;
  let high = replay.events;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (float64At(timeUs, replay.firstEvent + middle) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** A step begins at each run of optimizer allocations that follows other work. */
function fromOptimizer(snapshot: GpuSnapshot, replay: GpuReplay): number[] {
  const { events } = snapshot;
  const known = new Map<number, boolean>();
  const moments: number[] = [];
  let others = 0;
  for (let event = 0; event < replay.events; event++) {
    const row = replay.firstEvent + event;
    if (events.action[row] !== GpuAction.alloc) {
      continue;
    }
    const stack = uint32At(events.stack, row);
    let optimizer = known.get(stack);
    if (optimizer === undefined) {
      optimizer = gpuFramesOf(snapshot, stack).some(({ file }) =>
        /[/\\]torch[/\\]optim[/\\]/.test(file),
      );
      known.set(stack, optimizer);
    }
    if (!optimizer) {
      others += 1;
    } else {
      if (others > 0) {
        moments.push(event);
      }
      others = 0;
    }
  }
  return evenlySpaced(moments) ? moments : [];
}

function isLossGradient(frames: readonly GpuFrame[]): boolean {
  return frames.some(
    ({ function: name, file }) =>
      name === "_make_grads" && /[/\\]torch[/\\]autograd[/\\]/.test(file),
  );
}

/**
 * The site that recurs most regularly, of those that `isWanted` accepts; among several, the rarest, because a step is
 * the longest period.
 */
function fromBeat(
  snapshot: GpuSnapshot,
  replay: GpuReplay,
  isWanted: (frames: readonly GpuFrame[]) => boolean = () => true,
): number[] {
  const { events } = snapshot;
  const bySite = new Map<number, number[]>();
  for (let event = 0; event < replay.events; event++) {
    const row = replay.firstEvent + event;
    if (events.action[row] !== GpuAction.alloc || events.stack[row] === 0) {
      continue;
    }
    const stack = uint32At(events.stack, row);
    const list = bySite.get(stack);
    if (list === undefined) {
      bySite.set(stack, [event]);
    } else if (list.length <= 10_000) {
      // Sites in a step's inner loops recur far more often than steps.
      list.push(event);
    }
  }
  let best: number[] = [];
  for (const [stack, list] of bySite) {
    const spans = (itemAt(list, list.length - 1) - itemAt(list, 0)) / Math.max(1, replay.events);
    if (list.length < FEWEST + 1 || spans < 0.5 || !evenlySpaced(list)) {
      continue;
    }
    if (!isWanted(gpuFramesOf(snapshot, stack))) {
      continue;
    }
    if (best.length === 0 || list.length < best.length) {
      best = list;
    }
  }
  return best;
}

/** True if their distances vary by less than a third. */
function evenlySpaced(moments: readonly number[]): boolean {
  if (moments.length < FEWEST) {
    return false;
  }
  const gaps = moments.length - 1;
  const mean = (itemAt(moments, gaps) - itemAt(moments, 0)) / gaps;
  let squares = 0;
  for (let gap = 0; gap < gaps; gap++) {
    squares += (itemAt(moments, gap + 1) - itemAt(moments, gap) - mean) ** 2;
  }
  return Math.sqrt(squares / gaps) < mean / 3;
}

function distinct(moments: readonly number[]): number[] {
  return [...new Set(moments)];
}
