/**
 * All Python stacks of a program at one moment; with an unwinder, including native frames.
 *
 *   while it runs      where asyncio keeps its tasks; a first reading, which caches most code objects
 *   hold it            thread states, frames and tasks; code that is new; copies of the native stacks
 *   let it go          names of the threads; native frames out of the copies
 *
 * If it cannot be paused (no ptrace; traced by another tool), readings are repeated until two in a row agree
 * about a thread; a thread that moves all the time is shown as in one of the readings, and `limits` reports it.
 */
import {
  copyThreads,
  type HeldThread,
  holdProcess,
  readTasks as readKernelTasks,
  StackRoom,
  type Task,
  type ThreadUnwinder,
} from "../../linux/index.js";
import type { Address, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { orFailure, TidemarkError } from "../../model/errors/errors.js";
import type { NativeStack } from "../../model/profile/native_stack.js";
import type { PythonRuntime } from "../interpreter/locate.js";
import { type ThreadState, walkThreads } from "../interpreter/thread_list.js";
import { CodeReader } from "./code.js";
import { type PythonFrame, type PythonStack, readStack } from "./frames.js";
import { type MixedFrame, mergeStacks } from "./native_merge.js";
import { findTaskLists, type PythonTask, readTasks, type TaskLists } from "./tasks.js";
import { gilHolder, listThreads, type PythonThread } from "./threads.js";

interface ThreadStack {
  readonly thread: PythonThread;
  /** Innermost first. */
  readonly frames: readonly PythonFrame[];
  /** With native frames; null if they were not requested or are unavailable. */
  readonly mixed: readonly MixedFrame[] | null;
}

/** A thread without a Python thread state. */
interface NativeThread {
  readonly task: Task;
  readonly frames: readonly MixedFrame[];
}

export interface Stacks {
  readonly atMs: TimeMs;
  /** Pause of the program; 0 if it was read while running. */
  readonly pauseMs: Millis;
  readonly threads: readonly ThreadStack[];
  /** Empty if native frames were not requested. */
  readonly nativeThreads: readonly NativeThread[];
  readonly tasks: readonly PythonTask[];
  /** What could not be read, and why. */
  readonly limits: readonly string[];
}

/** A program that is not released by then continues by itself. */
const LONGEST_PAUSE_MS = 500;
const MOST_SNAPSHOTS = 50;

/** `unwinder`: also reads native frames. Throws TM-E020, TM-E024. */
export async function readStacks(
  python: PythonRuntime,
  unwinder: ThreadUnwinder | null = null,
): Promise<Stacks> {
  const codes = new CodeReader(python);
  const { pid } = python.memory;
  const lists = orFailure(() => findTaskLists(python));
  const readNow = () =>
    orFailure(() => readOnce(codes, python, lists instanceof TidemarkError ? [] : lists));
  if (pid === null) {
    return describe(python, thrown(readNow()), { pauseMs: 0, atMs: Date.now() });
  }
  const room = unwinder === null ? null : new StackRoom();
  const nativeLimits = unwinder === null ? [] : ["native frames can be read only during a pause"];
  // Warms up the code that will run during the pause.
  readNow();
  const tasks = new Map(readKernelTasks(pid).map((task) => [task.tid, task]));
  const hold = await holdOrReason(pid);
  if (typeof hold === "string") {
    return readRunning(python, readNow, [`it was read while it ran: ${hold}`, ...nativeLimits]);
  }
  const atMs = Date.now();
  let seen: Reading | TidemarkError;
  let copies: readonly HeldThread[] = [];
  let released: { readonly pauseMs: Millis; readonly lapsed: boolean };
  try {
    const registers = room === null ? null : hold.registers(); // they are added while Python's frames are read
    seen = readNow();
    copies = room && registers ? copyThreads(python.memory, await registers, room) : [];
  } finally {
    released = await hold.release();
  }
  if (released.lapsed) {
    return readRunning(python, readNow, [
      "it was read while it ran: it could not be paused long enough",
      ...nativeLimits,
    ]);
  }
  const stacks = describe(python, thrown(seen), { pauseMs: released.pauseMs, atMs, tasks });
  python.memory.refresh(); // libraries may have been loaded in the meantime
  const natives = copies.map((copy) => unwinder?.unwind(copy)).filter((native) => native != null);
  return unwinder === null ? stacks : withNative(stacks, thrown(seen), tasks, natives);
}

/** A thread with two interpreters has two thread states, each with the whole native stack around its frames. */
function withNative(
  stacks: Stacks,
  seen: Reading,
  tasks: ReadonlyMap<number, Task>,
  natives: readonly NativeStack[],
): Stacks {
  const byTid = new Map(natives.map((native) => [native.tid, native]));
  const tidOf = ({ thread }: ThreadStack) => thread.task?.tid ?? thread.tid ?? 0;
  const ofPython = new Set(stacks.threads.map(tidOf));
  return {
    ...stacks,
    threads: stacks.threads.map((stack) => {
      const native = byTid.get(tidOf(stack));
      const python = seen.stacks.get(stack.thread.address);
      return native === undefined || python === undefined
        ? stack
        : { ...stack, mixed: mergeStacks(python, native) };
    }),
    nativeThreads: natives
      .filter(({ tid }) => !ofPython.has(tid))
      .map((native) => ({
        task: tasks.get(native.tid) ?? { tid: native.tid, ownTid: native.tid, name: "", state: "" },
        frames: mergeStacks(NO_PYTHON, native),
      })),
  };
}

const NO_PYTHON: PythonStack = { frames: [], evaluations: [] };

async function holdOrReason(pid: Pid) {
  try {
    return await holdProcess(pid, LONGEST_PAUSE_MS);
  } catch (error) {
    if (error instanceof TidemarkError) {
      return error.what;
    }
    throw error;
  }
}

function thrown<Value>(result: Value | TidemarkError): Value {
  if (result instanceof TidemarkError) {
    throw result;
  }
  return result;
}

interface Reading {
  readonly states: readonly ThreadState[];
  /** By PyThreadState. */
  readonly stacks: ReadonlyMap<Address, PythonStack>;
  readonly holders: ReadonlySet<Address>;
  readonly tasks: readonly PythonTask[];
  readonly limits: readonly string[];
}

/** Mappings may have been added since they were read last; they are read again only if one is missing. */
function readOnce(codes: CodeReader, python: PythonRuntime, lists: readonly TaskLists[]): Reading {
  try {
    return walk(codes, python, lists);
  } catch (error) {
    if (!(error instanceof TidemarkError) || !python.memory.refresh()) {
      throw error;
    }
    return walk(codes, python, lists);
  }
}

function walk(codes: CodeReader, python: PythonRuntime, lists: readonly TaskLists[]): Reading {
  python.reader.forget();
  codes.forget();
  const states: ThreadState[] = [];
  const stacks = new Map<Address, PythonStack>();
  const holders = new Set<Address>();
  for (const interpreter of python.interpreters) {
    holders.add(gilHolder(python, interpreter));
    for (const state of walkThreads(python, interpreter)) {
      states.push(state);
      stacks.set(state.address, readStack(codes, state.address));
    }
  }
  const limits: string[] = [];
  return {
    states,
    stacks,
    holders,
    tasks: readTasks(python, codes, lists, stacks, limits),
    limits,
  };
}

/** Reads until two consecutive readings agree on every thread, a limited number of times. */
function readRunning(
  python: PythonRuntime,
  readNow: () => Reading | TidemarkError,
  limits: readonly string[],
): Stacks {
  let before: Reading | null = null;
  let failure: TidemarkError | null = null;
  let unsteady = 0;
  for (let count = 0; count < MOST_SNAPSHOTS; count++) {
    const seen = readNow();
    if (seen instanceof TidemarkError) {
      failure = seen;
      continue;
    }
    unsteady = before === null ? seen.stacks.size : differing(before, seen);
    before = seen;
    if (unsteady === 0) {
      break;
    }
  }
  if (before === null) {
    throw failure;
  }
  const doubt =
    unsteady === 0 ? [] : [`${unsteady} of its threads changed while their stacks were read`];
  return describe(python, before, { pauseMs: 0, atMs: Date.now(), limits: [...limits, ...doubt] });
}

/** Threads of `b` whose stack differs from `a`. */
function differing(a: Reading, b: Reading): number {
  let count = 0;
  for (const [thread, { frames }] of b.stacks) {
    const other = a.stacks.get(thread)?.frames;
    const same =
      other?.length === frames.length &&
      frames.every(
        ({ address, code, line }, index) =>
          other[index]?.address === address &&
          other[index]?.code === code &&
          other[index]?.line === line,
      );
    count += same ? 0 : 1;
  }
  return count;
}

interface Circumstances {
  readonly pauseMs: Millis;
  readonly atMs: TimeMs;
  /** Their states before the pause, because pausing and releasing wakes all threads. */
  readonly tasks?: ReadonlyMap<number, Task>;
  readonly limits?: readonly string[];
}

function describe(
  python: PythonRuntime,
  seen: Reading,
  { pauseMs, atMs, tasks, limits = [] }: Circumstances,
): Stacks {
  const listed = orFailure(() => listThreads(python));
  const known = new Map(
    (listed instanceof TidemarkError ? [] : listed).map((thread) => [thread.address, thread]),
  );
  const threads = seen.states.map((state) => {
    const thread = known.get(state.address);
    const { name, task } = thread?.pthread === state.pthread ? thread : { name: "", task: null };
    return {
      thread: {
        ...state,
        name,
        task: (task && tasks?.get(task.tid)) ?? task,
        holdsGil: seen.holders.has(state.address),
      },
      frames: seen.stacks.get(state.address)?.frames ?? [],
      mixed: null,
    };
  });
  return {
    atMs,
    pauseMs,
    threads: threads.reverse(), // the list begins with the newest
    nativeThreads: [],
    tasks: seen.tasks,
    limits: [...limits, ...seen.limits],
  };
}
