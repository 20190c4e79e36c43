/**
 * Census and graph of a program or of its core file, with a pause within the allowed limit:
 *
 *   plan (running) ── room for the copy ── stop ── copy ── let go ── analyse
 */
import {
  type AddressRange,
  type Held,
  holdProcess,
  type Memory,
  MemoryReader,
} from "../../../linux/index.js";
import type { Bytes, Millis, Objects, Pid } from "../../../model/base/units.js";
import { orFailure, orNull, TidemarkError } from "../../../model/errors/errors.js";
import {
  analysisTooLarge,
  copyTooLarge,
  copyTorn,
  pauseTooLong,
} from "../../../model/errors/heap_errors.js";
import { locatePython, type PythonRuntime } from "../../interpreter/locate.js";
import { type ThreadState, walkThreads } from "../../interpreter/thread_list.js";
import { moduleAttribute } from "../../stacks/threads.js";
import { buildGraph, graphMemory, type ObjectGraph, type RootPlaces } from "../graph/graph.js";
import {
  type CopyPlan,
  copyRanges,
  libraryRanges,
  momentRanges,
  planCopy,
  sumOf,
} from "../memory/copy_plan.js";
import { HeapCopy, LARGEST_COPY } from "../memory/heap_copy.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { type HeapLayout, heapLayout } from "../memory/layout.js";
import { FrameLocals } from "../objects/frame_locals.js";
import { type Census, takeCensus } from "./census.js";
import { takeCensusWith, withHelpers } from "./census_threads.js";

/**
 * No machine copies faster into touched pages; a copy that would take too long even at this speed is refused at
 * once.
 */
const MOST_BYTES_A_MS = (8 * 2 ** 30) / 1000;
/** Bytes copied beforehand, to measure this machine's current speed. */
const TRIAL_BYTES = 16 * 2 ** 20;
/** Time to stop every thread, and for growth since the plan. */
const STOP_MS = 20;
const MOST_CHUNKS = 1 << 16;
const LARGEST_CHUNK = 2 ** 30;
/** Attempts for a list of threads that changes while it is read. */
const MOST_TRIES = 20;
const GROWTH = 1.1;
const GROWTH_BYTES = 16 * 2 ** 20;

interface TakeOptions {
  /** Longest allowed pause of the program. */
  readonly maxPauseMs: Millis;
  /** Memory that copy and analysis may use; unlimited if absent. */
  readonly maxBytes?: Bytes;
  /** Called before the work begins, with the number of objects and the memory for copy and analysis. */
  readonly onPlan?: (objects: Objects, bytes: Bytes) => void;
}

export interface TakenCensus {
  readonly census: Census;
  readonly python: PythonRuntime;
  /** 0 if the program was not paused. */
  readonly pauseMs: Millis;
}

export interface TakenGraph {
  readonly objects: ObjectGraph;
  readonly python: PythonRuntime;
  readonly pauseMs: Millis;
}

/** Counts the objects of a running program, or of a core. Throws TM-E022 to TM-E025. */
export function countObjects(memory: Memory): TakenCensus {
  const python = locatePython(memory);
  return { census: takeCensus(memory, layoutOf(python)), python, pauseMs: 0 };
}

/** The same in several threads if the program is large: faster, with the same total work. */
export function countObjectsTogether(memory: Memory): Promise<TakenCensus> {
  return withHelpers(memory, async (helpers) => {
    const python = locatePython(memory);
    const census = await takeCensusWith(helpers, memory, layoutOf(python));
    return { census, python, pauseMs: 0 };
  });
}

/** Counts the objects at one moment. Also throws TM-E050, TM-E053 and the errors of {@link holdProcess}. */
export async function countObjectsExactly(
  memory: Memory,
  options: TakeOptions,
): Promise<TakenCensus> {
  if (memory.pid === null) {
    return countObjects(memory); // a core file does not change
  }
  const python = locatePython(memory);
  const plan = planCopy(memory, layoutOf(python));
  if (roomFor(plan) > Math.min(options.maxBytes ?? LARGEST_COPY, LARGEST_COPY)) {
    return countInPlace(memory, memory.pid, python, options.maxPauseMs);
  }
  const { copy, pauseMs } = await copyHeap(memory, plan, options, 0);
  return { census: takeCensus(copy, layoutOf(python)), python, pauseMs };
}

/**
 * If there is no room for a copy, the program is paused while it is counted. A count while it runs shows how
 * long that takes.
 */
function countInPlace(
  memory: Memory,
  pid: Pid,
  python: PythonRuntime,
  maxPauseMs: Millis,
): Promise<TakenCensus> {
  const layout = layoutOf(python);
  return withHelpers(memory, async (helpers) => {
    const count = () => takeCensusWith(helpers, memory, layout);
    const started = performance.now();
    await count();
    const estimateMs = performance.now() - started + STOP_MS;
    if (estimateMs > maxPauseMs) {
      throw pauseTooLong(memory.name, estimateMs, maxPauseMs);
    }
    const held = await holdProcess(pid, maxPauseMs);
    const { result: census, pauseMs } = await whileHeld(memory, held, maxPauseMs, count);
    return { census, python, pauseMs };
  });
}

/**
 * The graph of a program's objects at one moment. `expected` is the number of objects in the census, which
 * determines the memory needed. Throws TM-E050 to TM-E053, and the errors of {@link countObjectsExactly}.
 */
export async function takeGraph(
  memory: Memory,
  options: TakeOptions,
  expected: number,
): Promise<TakenGraph> {
  const python = locatePython(memory);
  const { copy, pauseMs } = await copyHeap(
    memory,
    planCopy(memory, layoutOf(python)),
    options,
    expected,
  );
  const objects = buildGraph(copy, layoutOf(python), rootPlaces(python, copy));
  return { objects, python, pauseMs };
}

/** The roots of a graph of that copy: read from the copy, because the program continues. Throws TM-E024. */
export function rootPlaces(python: PythonRuntime, copy: HeapPages): RootPlaces {
  const { mainInterpreter, layout } = python;
  const copied: PythonRuntime = { ...python, memory: copy, reader: new MemoryReader(copy) };
  const threading = orNull(() => moduleAttribute(copied, mainInterpreter, "threading", "_active"));
  return {
    modules: copied.reader.pointer(mainInterpreter + layout.interpreter.modules),
    threads: threading ?? 0,
    stacks: dataStacks(python, copied, copy),
    frames: new FrameLocals(python, copy),
  };
}

/** As in the copy. If a thread was starting or ending at that moment, as in the program now. */
function threadsOf(python: PythonRuntime, copied: PythonRuntime): ThreadState[] {
  const walk = (from: PythonRuntime) =>
    python.interpreters.flatMap((interpreter) => [...walkThreads(from, interpreter)]);
  let threads = orFailure(() => walk(copied));
  for (let tries = 0; threads instanceof TidemarkError && tries < MOST_TRIES; tries++) {
    python.reader.forget();
    threads = orFailure(() => walk(python));
  }
  if (threads instanceof TidemarkError) {
    throw threads;
  }
  return threads;
}

/** _PyStackChunk: 0 previous  8 size  16 top  24 data; each thread has one chain. */
function dataStacks(python: PythonRuntime, copied: PythonRuntime, copy: HeapPages): AddressRange[] {
  const { dataStack } = python.layout.thread;
  if (dataStack === null) {
    return [];
  }
  const ranges: AddressRange[] = [];
  for (const { address } of threadsOf(python, copied)) {
    let chunk = copy.word(address + dataStack);
    for (let n = 0; chunk > 0 && n < MOST_CHUNKS; n++) {
      const size = copy.word(chunk + 8);
      if (!(size > 0 && size < LARGEST_CHUNK)) {
        break;
      }
      ranges.push({ start: chunk + 24, end: chunk + size });
      chunk = copy.word(chunk);
    }
  }
  return ranges;
}

function layoutOf(python: PythonRuntime): HeapLayout {
  const minor = Number(/^3\.(\d+)/.exec(python.version)?.[1]);
  const layout = heapLayout(minor);
  if (layout === null) {
    throw new Error(`no heap layout for Python ${python.version}`); // the locator supports no other versions
  }
  return layout;
}

function roomFor({ bytes }: CopyPlan): Bytes {
  return bytes * GROWTH + GROWTH_BYTES;
}

async function copyHeap(
  memory: Memory,
  plan: CopyPlan,
  { maxPauseMs, maxBytes, onPlan }: TakeOptions,
  objects: number,
): Promise<{ copy: HeapCopy; pauseMs: Millis }> {
  const { leftOut } = plan;
  const allow = (bytesAMs: number): void => {
    const estimateMs = sumOf(momentRanges(memory, leftOut)) / bytesAMs + STOP_MS;
    if (memory.pid !== null && estimateMs > maxPauseMs) {
      throw pauseTooLong(memory.name, estimateMs, maxPauseMs);
    }
  };
  allow(MOST_BYTES_A_MS);
  const room = roomFor(plan);
  if (room > LARGEST_COPY) {
    throw copyTooLarge(memory.name, room, LARGEST_COPY);
  }
  const needed = room + graphMemory(objects);
  if (maxBytes !== undefined && needed > maxBytes) {
    throw analysisTooLarge(objects, needed, maxBytes);
  }
  onPlan?.(objects, needed);
  const copy = new HeapCopy(memory, room);
  if (memory.pid === null) {
    copy.fill(copyRanges(memory, leftOut));
    return { copy, pauseMs: 0 };
  }
  allow(await copy.tryOut(momentRanges(memory, leftOut), TRIAL_BYTES));
  const held = await holdProcess(memory.pid, maxPauseMs);
  const { pauseMs } = await whileHeld(memory, held, maxPauseMs, () =>
    copy.fillConcurrently(momentRanges(memory, leftOut)),
  );
  copy.fill(libraryRanges(memory));
  return { copy, pauseMs };
}

/**
 * Calls a function while the program is paused, and then releases it. Throws TM-E053 if the program continued
 * earlier.
 */
async function whileHeld<Result>(
  memory: Memory,
  held: Held,
  maxPauseMs: Millis,
  act: () => Result | Promise<Result>,
): Promise<{ readonly result: Result; readonly pauseMs: Millis }> {
  let result: Result;
  let pause: Awaited<ReturnType<Held["release"]>>;
  try {
    memory.refresh();
    result = await act();
  } finally {
    pause = await held.release();
  }
  if (pause.lapsed) {
    throw copyTorn(memory.name, maxPauseMs);
  }
  return { result, pauseMs: pause.pauseMs };
}
