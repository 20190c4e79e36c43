/** The threads with a Python thread state, their names, and which of them holds the GIL. */
import { readTasks, type Task } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { dictEntries, dictGet, instanceAttribute } from "../interpreter/dicts.js";
import type { PythonRuntime } from "../interpreter/locate.js";
import {
  isA,
  type PythonMemory,
  readSmallInteger,
  readText,
  TypeFlag,
} from "../interpreter/objects.js";
import { type ThreadState, walkThreads } from "../interpreter/thread_list.js";

export interface PythonThread extends ThreadState {
  /** The kernel's entry; null if the thread has ended, or for a core. */
  readonly task: Task | null;
  /** The name from threading, otherwise the kernel's; "" if neither is known. */
  readonly name: string;
  readonly holdsGil: boolean;
}

/** The kernel names the main thread after the program; threading, once it is imported, names it so. */
const MAIN_THREAD = "MainThread";

/** All threads of all interpreters, oldest first. Throws TM-E024. */
export function listThreads(python: PythonRuntime): PythonThread[] {
  const { pid } = python.memory;
  const tasks = new Map((pid === null ? [] : readTasks(pid)).map((task) => [task.ownTid, task]));
  return python.interpreters.flatMap((interpreter) => {
    const names = threadingNames(python, interpreter);
    const holder = gilHolder(python, interpreter);
    return [...walkThreads(python, interpreter)].reverse().map((state) => {
      const task = (state.tid === null ? undefined : tasks.get(state.tid)) ?? null;
      return {
        ...state,
        task,
        name: names.get(state.pthread) ?? (task?.tid === pid ? MAIN_THREAD : (task?.name ?? "")),
        holdsGil: state.address === holder,
      };
    });
  });
}

/**
 * Names that threading gives to the threads of all interpreters, by thread id (in the process's own pid
 * namespace). Throws TM-E024.
 */
export function threadNames(python: PythonRuntime): Map<number, string> {
  const byTid = new Map<number, string>();
  for (const interpreter of python.interpreters) {
    const names = threadingNames(python, interpreter);
    for (const { tid, pthread } of walkThreads(python, interpreter)) {
      const name = names.get(pthread);
      if (tid !== null && name !== undefined) {
        byTid.set(tid, name);
      }
    }
  }
  return byTid;
}

/**
 * The PyThreadState that holds the interpreter's GIL; 0 if none does. From 3.12 on, each interpreter may have
 * its own GIL.
 */
export function gilHolder(python: PythonRuntime, interpreter: Address): Address {
  const { reader, layout, address } = python;
  const { gilPointer } = layout.interpreter;
  const gil =
    gilPointer === null
      ? address + (layout.runtime.gil ?? 0)
      : reader.pointer(interpreter + gilPointer);
  if (gil === 0) {
    return 0;
  }
  const locked = reader.int32(gil + layout.gil.locked) === 1;
  return locked ? reader.pointer(gil + layout.gil.lastHolder) : 0;
}

const LONGEST_NAME = 256;

/** pthread_self() -> name, from threading._active, which contains only threads that threading knows. */
function threadingNames(python: PythonMemory, interpreter: Address): Map<Address, string> {
  const names = new Map<Address, string>();
  try {
    const active = moduleAttribute(python, interpreter, "threading", "_active");
    for (const { key, value } of active === null ? [] : dictEntries(python, active)) {
      const ident = readSmallInteger(python, key);
      const name = instanceAttribute(python, value, "_name");
      if (ident !== null && name !== null && isA(python, name, TypeFlag.Unicode)) {
        names.set(ident, readText(python, name, LONGEST_NAME));
      }
    }
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    // It changes while it is read, so the kernel's names are used.
  }
  return names;
}

/** sys.modules[module].__dict__[name]; null if there is no such module or name. */
export function moduleAttribute(
  python: PythonMemory,
  interpreter: Address,
  module: string,
  name: string,
): Address | null {
  const { reader, layout } = python;
  const found = moduleEntry(python, interpreter, module);
  const dict = found === null ? 0 : reader.pointer(found + layout.module.dict);
  return dict === 0 ? null : dictGet(python, dict, name);
}

/** sys.modules[module], whatever it is; null if there is none. */
export function moduleEntry(
  python: PythonMemory,
  interpreter: Address,
  module: string,
): Address | null {
  const { reader, layout } = python;
  const modules = reader.pointer(interpreter + layout.interpreter.modules);
  return modules === 0 ? null : dictGet(python, modules, module);
}
