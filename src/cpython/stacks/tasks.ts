/**
 * asyncio's tasks, and where each one waits: the frames of its coroutine and of the coroutines that it awaits.
 *
 *   task ── task_coro ──> coroutine ── frame, top of its stack ──> coroutine ── ... ──> future
 *     └──── task_fut_waiter ──> the future, or task, that will wake it
 *
 * Where CPython lists tasks, by version:
 *   3.9 - 3.11   asyncio.tasks._all_tasks, a WeakSet
 *   3.12, 3.13   asyncio.tasks._scheduled_tasks, a WeakSet, and _eager_tasks, a set
 *   3.14+        lists through the tasks themselves, headed in each thread state and the interpreter
 *
 * TaskObj is declared in Modules/_asynciomodule.c and not in a header, so its fields are found by their
 * contents: a coroutine, then a name, then a Context, and before them the object that the task waits for. Other
 * event loops (uvloop) use the same tasks. trio and curio have no such tasks, so their coroutines are not
 * shown.
 */

import type { Address } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { instanceAttribute, setMembers } from "../interpreter/dicts.js";
import type { PythonRuntime } from "../interpreter/locate.js";
import {
  isA,
  type PythonMemory,
  readItems,
  readSmallInteger,
  readText,
  TypeFlag,
  typeName,
  typeNameOf,
  typeOf,
} from "../interpreter/objects.js";
import type { CodeReader } from "./code.js";
import { awaited, coroutineFrame } from "./coroutines.js";
import { type PythonFrame, type PythonStack, readFrame } from "./frames.js";
import { moduleAttribute } from "./threads.js";

export interface PythonTask {
  readonly address: Address;
  readonly name: string;
  /** PyThreadState of the thread that runs it now; null if it waits. */
  readonly runsOn: Address | null;
  /** Innermost first; for a running task, up to its outermost coroutine. */
  readonly frames: readonly PythonFrame[];
  /** The tasks that it waits for directly, or through asyncio.gather. */
  readonly waitsFor: readonly Address[];
}

/** Where an interpreter keeps its tasks. It is looked up while the program runs, because that takes long. */
export interface TaskLists {
  readonly interpreter: Address;
  /** _asyncio.Task. */
  readonly type: Address;
  /** WeakSets and sets. */
  readonly sets: readonly Address[];
}

/** More tasks are left out and reported as a limit, because the program may be paused. */
const MOST_TASKS = 10_000;
const DEEPEST_AWAIT = 10_000;
const DEEPEST_TYPE = 64;

/** One for each interpreter that uses asyncio. Throws TM-E024. */
export function findTaskLists(python: PythonRuntime): TaskLists[] {
  return python.interpreters.flatMap((interpreter) => {
    const type = moduleAttribute(python, interpreter, "_asyncio", "Task");
    if (type === null) {
      return [];
    }
    const sets = ["_all_tasks", "_scheduled_tasks", "_eager_tasks"].map((name) =>
      moduleAttribute(python, interpreter, "asyncio.tasks", name),
    );
    return [{ interpreter, type, sets: sets.filter((set) => set !== null) }];
  });
}

/** @param stacks of all threads; a running task is found on one of them */
export function readTasks(
  python: PythonRuntime,
  codes: CodeReader,
  lists: readonly TaskLists[],
  stacks: ReadonlyMap<Address, PythonStack>,
  limits: string[],
): PythonTask[] {
  const tasks: PythonTask[] = [];
  try {
    for (const list of lists) {
      const reader = new TaskReader(codes, list.type, stacks);
      for (const task of listTasks(python, list)) {
        if (tasks.length === MOST_TASKS) {
          limits.push(`only ${MOST_TASKS} of its asyncio tasks are shown`);
          return tasks;
        }
        const read = reader.read(task);
        if (read !== null) {
          tasks.push(read);
        }
      }
    }
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    limits.push("not all of its asyncio tasks could be read");
  }
  return tasks;
}

function* listTasks(
  python: PythonRuntime,
  { interpreter, type, sets }: TaskLists,
): Generator<Address> {
  const { reader, layout } = python;
  const { asyncioTasks } = layout.interpreter;
  const seen = new Set<Address>();
  const fresh = function* (tasks: Iterable<Address>) {
    for (const task of tasks) {
      if (!seen.has(task) && isTask(python, task, type)) {
        seen.add(task);
        yield task;
      }
    }
  };
  if (asyncioTasks !== null) {
    yield* fresh(linkedTasks(python, interpreter + asyncioTasks, type));
    let thread = reader.pointer(interpreter + layout.interpreter.threadsHead);
    for (let count = 0; thread !== 0 && count < MOST_TASKS; count++) {
      const head = thread + (layout.thread.asyncioTasks ?? 0);
      yield* fresh(linkedTasks(python, head, type));
      thread = reader.pointer(thread + layout.thread.next);
    }
  }
  for (const set of sets) {
    yield* fresh(membersOf(python, set));
  }
}

/** llist_node (Include/internal/pycore_llist.h): next, previous; the head is part of the ring. */
function* linkedTasks(python: PythonMemory, head: Address, type: Address): Generator<Address> {
  const { reader, layout } = python;
  const size = reader.int64(type + layout.type.basicSize);
  let within: number | null = null;
  let node = reader.pointer(head);
  for (let count = 0; node !== head && node !== 0 && count <= MOST_TASKS; count++) {
    within ??= nodeOffset(python, node, type, size);
    if (within === null) {
      return;
    }
    yield node - within;
    node = reader.pointer(node);
  }
}

/** Offset of the list node in a task, relative to the word with its type. */
function nodeOffset(
  python: PythonMemory,
  node: Address,
  type: Address,
  size: number,
): number | null {
  for (let offset = 16; offset < Math.min(size, 1024); offset += 8) {
    try {
      if (isTask(python, node - offset, type)) {
        return offset;
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
    }
  }
  return null;
}

/** Live members of a WeakSet or of a set. */
function* membersOf(python: PythonMemory, set: Address): Generator<Address> {
  if (typeNameOf(python, set) === "set") {
    yield* setMembers(python, set);
    return;
  }
  const data = instanceAttribute(python, set, "data");
  for (const reference of data === null ? [] : setMembers(python, data)) {
    const object = python.reader.pointer(reference + python.layout.weakReference.object);
    if (object !== 0) {
      yield object;
    }
  }
}

/** Whether the object's type is `type` or has it among its bases. */
function isTask(python: PythonMemory, object: Address, type: Address): boolean {
  let current = typeOf(python, object);
  for (let depth = 0; current !== 0 && depth < DEEPEST_TYPE; depth++) {
    if (current === type) {
      return true;
    }
    current = python.reader.pointer(current + python.layout.type.base);
  }
  return false;
}

class TaskReader {
  /** Offset of task_coro in TaskObj; task_fut_waiter precedes it, task_name follows it. */
  #coroutineOffset: number | null = null;

  constructor(
    readonly codes: CodeReader,
    readonly type: Address,
    readonly stacks: ReadonlyMap<Address, PythonStack>,
  ) {}

  /** null if it is done or its fields were not found. */
  read(task: Address): PythonTask | null {
    const { python } = this.codes;
    const { reader } = python;
    this.#coroutineOffset ??= this.#findCoroutine(task);
    if (this.#coroutineOffset === null) {
      return null;
    }
    const coroutine = reader.pointer(task + this.#coroutineOffset);
    if (coroutine === 0) {
      return null;
    }
    const running = this.#running(coroutineFrame(python, coroutine));
    return {
      address: task,
      name: this.#name(reader.pointer(task + this.#coroutineOffset + 8)),
      runsOn: running?.thread ?? null,
      frames: running?.frames ?? this.#framesOf(coroutine),
      waitsFor: this.#waitsFor(reader.pointer(task + this.#coroutineOffset - 8)),
    };
  }

  #findCoroutine(task: Address): number | null {
    const { python } = this.codes;
    const size = python.reader.int64(this.type + python.layout.type.basicSize);
    for (let offset = 24; offset + 24 <= Math.min(size, 1024); offset += 8) {
      const [coroutine, name, context] = [0, 8, 16].map((next) =>
        python.reader.pointer(task + offset + next),
      ) as [Address, Address, Address];
      try {
        if (
          isAwaitable(typeNameOf(python, coroutine)) &&
          (isA(python, name, TypeFlag.Unicode) || isA(python, name, TypeFlag.Long)) &&
          /(^|\.)Context$/.test(typeNameOf(python, context))
        ) {
          return offset;
        }
      } catch (error) {
        if (!(error instanceof TidemarkError)) {
          throw error;
        }
      }
    }
    return null;
  }

  /** Later versions store a number and create the name when it is requested. */
  #name(name: Address): string {
    const { python } = this.codes;
    return isA(python, name, TypeFlag.Unicode)
      ? readText(python, name, 256)
      : `Task-${readSmallInteger(python, name) ?? ""}`;
  }

  /** The part of a thread's stack that belongs to the coroutine, if the thread runs it. */
  #running(frame: Address): { thread: Address; frames: readonly PythonFrame[] } | null {
    for (const [thread, { frames }] of frame === 0 ? [] : this.stacks) {
      const index = frames.findIndex(({ address }) => address === frame);
      if (index >= 0) {
        return { thread, frames: frames.slice(0, index + 1) };
      }
    }
    return null;
  }

  #framesOf(coroutine: Address): PythonFrame[] {
    const { python } = this.codes;
    const frames: PythonFrame[] = [];
    const seen = new Set<Address>();
    let current: Address | null = coroutine;
    while (current !== null && !seen.has(current) && seen.size < DEEPEST_AWAIT) {
      seen.add(current);
      const address = coroutineFrame(python, current);
      const frame = address === 0 ? null : readFrame(this.codes, address);
      if (frame !== null) {
        frames.push(frame);
      }
      current = awaited(python, current);
    }
    return frames.reverse();
  }

  #waitsFor(future: Address): Address[] {
    const { python } = this.codes;
    if (future === 0) {
      return [];
    }
    if (isTask(python, future, this.type)) {
      return [future];
    }
    if (typeName(python, typeOf(python, future)) !== "_GatheringFuture") {
      return [];
    }
    const children = instanceAttribute(python, future, "_children");
    return children === null
      ? []
      : readItems(python, children).filter((child) => isTask(python, child, this.type));
  }
}

function isAwaitable(type: string): boolean {
  return type === "coroutine" || type === "generator";
}
