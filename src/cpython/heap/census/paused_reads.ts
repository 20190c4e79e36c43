/**
 * Census and graph of a program or of its core file, with the pause kept within what is allowed:
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
import { type HeapLayout, heapLayout } from "../memory/layout.js";
import { FrameLocals } from "../objects/frame_locals.js";
import { type Census, takeCensus } from "./census.js";
import { takeCensusWith, withHelpers } from "./census_threads.js";

/** No machine copies faster into touched pages: what would take too long at that is refused at once. */
const MOST_BYTES_A_MS = (8 * 2 ** 30) / 1000;
/** Copied beforehand, to see how fast this machine copies now. */
const TRIAL_BYTES = 16 * 2 ** 20;
/** To stop every thread, and for what grew since the plan. */
const STOP_MS = 20;
const MOST_CHUNKS = 1 << 16;
const LARGEST_CHUNK = 2 ** 30;
/** Of a list of threads that changes while it is read. */
const MOST_TRIES = 20;
const GROWTH = 1.1;
const GROWTH_BYTES = 16 * 2 ** 20;

interface TakeOptions {
  /** The program may stand still for this long. */
  readonly maxPauseMs: Millis;
  /** Memory that copy and analysis may take; no bound where it is not given. */
  readonly maxBytes?: Bytes;
  /** Told before the work begins: of how many objects, and what copy and analysis will take. */
  readonly onPlan?: (objects: Objects, bytes: Bytes) => void;
}

export interface TakenCensus {
  readonly census: Census;
  readonly python: PythonRuntime;
  /** 0: the program ran on. */
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

/** The same in several threads where the program is large: sooner, for no less work. */
export function countObjectsTogether(memory: Memory): Promise<TakenCensus> {
  return withHelpers(memory, async (helpers) => {
    const python = locatePython(memory);
    const census = await takeCensusWith(helpers, memory, layoutOf(python));
    return { census, python, pauseMs: 0 };
  });
}

/** Counts the objects of one moment. Throws TM-E050, TM-E053 and what {@link holdProcess} throws, too. */
export async function countObjectsExactly(
  memory: Memory,
  options: TakeOptions,
): Promise<TakenCensus> {
  if (memory.pid === null) {
    return countObjects(memory); // a core stands still
  }
  const python = locatePython(memory);
  const plan = planCopy(memory);
  if (roomFor(plan) > Math.min(options.maxBytes ?? LARGEST_COPY, LARGEST_COPY)) {
    return countInPlace(memory, memory.pid, python, options.maxPauseMs);
  }
  const { copy, pauseMs } = await copyHeap(memory, plan, options, 0);
  return { census: takeCensus(copy, layoutOf(python)), python, pauseMs };
}

/** Where there is no room for a copy: the program stands while it is counted. How long that takes is seen by
 * counting once as it runs. */
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
 * The graph of a program's objects at one moment. `expected` is the census' count, by which memory is asked
 * for. Throws TM-E050 to TM-E053, and what {@link countObjectsExactly} throws.
 */
export async function takeGraph(
  memory: Memory,
  options: TakeOptions,
  expected: number,
): Promise<TakenGraph> {
  const python = locatePython(memory);
  const { copy, pauseMs } = await copyHeap(memory, planCopy(memory), options, expected);
  const objects = buildGraph(copy, layoutOf(python), rootPlaces(python, copy));
  return { objects, python, pauseMs };
}

/** Where a graph of that copy begins: read from the copy, for the program runs on. Throws TM-E024. */
export function rootPlaces(python: PythonRuntime, copy: HeapCopy): RootPlaces {
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

/** As the copy has them; where a thread was starting or ending at that moment, as the program has them now. */
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

/** _PyStackChunk: 0 previous  8 size  16 top  24 data; one chain a thread. */
function dataStacks(python: PythonRuntime, copied: PythonRuntime, copy: HeapCopy): AddressRange[] {
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
    throw new Error(`no heap layout for Python ${python.version}`); // the locator knows no other versions
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
    copy.fillAtOnce(momentRanges(memory, leftOut)),
  );
  copy.fill(libraryRanges(memory));
  return { copy, pauseMs };
}

/** Does something with a program that stands, and lets it go. Throws TM-E053 where it ran again before. */
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
