/**
 * Every Python stack of a program, of one moment.
 *
 *   while it runs      where asyncio keeps its tasks; a look, that reads most code there is to read
 *   hold it            thread states, frames and tasks; code that is new
 *   let it go          names of the threads
 *
 * Where it cannot be held (no ptrace; traced by another tool), looks are repeated until two in a row say
 * the same of a thread; a thread that moves all the time is shown as one of the looks saw it, and `limits`
 * says so.
 */
import { holdProcess } from "../linux/index.js";
import { TidemarkError } from "../model/errors.js";
import type { Address, Millis, Pid, TimeMs } from "../model/units.js";
import { CodeReader } from "./code.js";
import { type PythonFrame, readFrames } from "./frames.js";
import type { PythonRuntime } from "./locate.js";
import { findTaskLists, type PythonTask, readTasks, type TaskLists } from "./tasks.js";
import { type ThreadState, walkThreads } from "./thread_list.js";
import { gilHolder, listThreads, type PythonThread } from "./threads.js";

export interface ThreadStack {
  readonly thread: PythonThread;
  /** Innermost first. */
  readonly frames: readonly PythonFrame[];
}

export interface Stacks {
  readonly atMs: TimeMs;
  /** How long the program stood still; 0 where it was read running. */
  readonly pauseMs: Millis;
  readonly threads: readonly ThreadStack[];
  readonly tasks: readonly PythonTask[];
  /** What could not be seen, and why. */
  readonly limits: readonly string[];
}

/** A program that is not released by then runs on by itself. */
const LONGEST_PAUSE_MS = 500;
const MOST_LOOKS = 50;

/** Throws TM-E020, TM-E024. */
export async function readStacks(python: PythonRuntime): Promise<Stacks> {
  const codes = new CodeReader(python);
  const { pid } = python.memory;
  const lists = orFailure(() => findTaskLists(python));
  const look = () =>
    orFailure(() => takeLook(codes, python, lists instanceof TidemarkError ? [] : lists));
  if (pid === null) {
    return describe(python, thrown(look()), 0, Date.now(), []);
  }
  // Compiles what will run while the program stands still.
  look();
  const hold = await holdOrReason(pid);
  if (typeof hold === "string") {
    return readRunning(python, look, [`it was read while it ran: ${hold}`]);
  }
  const atMs = Date.now();
  let seen: Look | TidemarkError;
  let released: { readonly pauseMs: Millis; readonly lapsed: boolean };
  try {
    seen = look();
  } finally {
    released = await hold.release();
  }
  if (released.lapsed) {
    return readRunning(python, look, [
      "it was read while it ran: it could not be held long enough",
    ]);
  }
  return describe(python, thrown(seen), released.pauseMs, atMs, []);
}

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

function orFailure<Value>(read: () => Value): Value | TidemarkError {
  try {
    return read();
  } catch (error) {
    if (error instanceof TidemarkError) {
      return error;
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

interface Look {
  readonly states: readonly ThreadState[];
  /** By PyThreadState. */
  readonly stacks: ReadonlyMap<Address, readonly PythonFrame[]>;
  readonly holders: ReadonlySet<Address>;
  readonly tasks: readonly PythonTask[];
  readonly limits: readonly string[];
}

/** Mappings may have come since they were read last; they are read again only where one is missed. */
function takeLook(codes: CodeReader, python: PythonRuntime, lists: readonly TaskLists[]): Look {
  try {
    return walk(codes, python, lists);
  } catch (error) {
    if (!(error instanceof TidemarkError) || !python.memory.refresh()) {
      throw error;
    }
    return walk(codes, python, lists);
  }
}

function walk(codes: CodeReader, python: PythonRuntime, lists: readonly TaskLists[]): Look {
  python.reader.forget();
  codes.forget();
  const states: ThreadState[] = [];
  const stacks = new Map<Address, readonly PythonFrame[]>();
  const holders = new Set<Address>();
  for (const interpreter of python.interpreters) {
    holders.add(gilHolder(python, interpreter));
    for (const state of walkThreads(python, interpreter)) {
      states.push(state);
      stacks.set(state.address, readFrames(codes, state.address));
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

/** Looks until two in a row agree on every thread, a bounded number of times. */
function readRunning(
  python: PythonRuntime,
  look: () => Look | TidemarkError,
  limits: readonly string[],
): Stacks {
  let before: Look | null = null;
  let failure: TidemarkError | null = null;
  let unsteady = 0;
  for (let count = 0; count < MOST_LOOKS; count++) {
    const seen = look();
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
    unsteady === 0 ? [] : [`${unsteady} of its threads moved on while their stacks were read`];
  return describe(python, before, 0, Date.now(), [...limits, ...doubt]);
}

/** Threads of `b` whose stack is not as in `a`. */
function differing(a: Look, b: Look): number {
  let count = 0;
  for (const [thread, frames] of b.stacks) {
    const other = a.stacks.get(thread);
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

function describe(
  python: PythonRuntime,
  seen: Look,
  pauseMs: Millis,
  atMs: TimeMs,
  limits: readonly string[],
): Stacks {
  const listed = orFailure(() => listThreads(python));
  const known = new Map(
    (listed instanceof TidemarkError ? [] : listed).map((thread) => [thread.address, thread]),
  );
  const threads = seen.states.map((state) => {
    const thread = known.get(state.address);
    const { name, task } = thread?.pthread === state.pthread ? thread : { name: "", task: null };
    return {
      thread: { ...state, name, task, holdsGil: seen.holders.has(state.address) },
      frames: seen.stacks.get(state.address) ?? [],
    };
  });
  return {
    atMs,
    pauseMs,
    threads: threads.reverse(), // the list begins with the newest
    tasks: seen.tasks,
    limits: [...limits, ...seen.limits],
  };
}
