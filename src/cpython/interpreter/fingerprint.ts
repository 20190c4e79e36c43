/**
 * Checks whether a layout fits an interpreter, with round trips that fail for any wrong offset. Each check has
 * a name, which the error reports.
 */
import { type Memory, taskIds } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { dictGet } from "./dicts.js";
import {
  isA,
  type PythonMemory,
  readSmallInteger,
  readText,
  TypeFlag,
  typeName,
  typeOf,
} from "./objects.js";
import { versionOf } from "./published_offsets.js";
import { walkThreads } from "./thread_list.js";
import { minorOf } from "./version_facts.js";

/** The first failed check. */
export class Mismatch extends Error {
  constructor(
    message: string,
    readonly passed: number,
    /** Version of the interpreter, if readable; otherwise "". */
    readonly version: string,
  ) {
    super(message);
  }
}

export interface Proof {
  readonly version: string;
  readonly interpreters: readonly Address[];
  readonly mainInterpreter: Address;
  readonly typeType: Address;
}

const MOST_INTERPRETERS = 4096;

/** Throws {@link Mismatch}. */
export function checkFingerprint(python: PythonMemory, memory: Memory, runtime: Address): Proof {
  const { reader, layout } = python;
  let passed = 0;
  let version = "";
  const check = <Value>(what: string, run: () => Value | null | false): Value => {
    try {
      const value = run();
      if (value !== null && value !== false) {
        passed++;
        return value;
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
    }
    throw new Mismatch(what, passed, version);
  };
  check(
    "its runtime is not initialized",
    () => reader.uint32(runtime + layout.runtime.initialized) === 1,
  );
  const mainInterpreter = check(
    "it has no main interpreter",
    () => reader.pointer(runtime + layout.runtime.interpretersMain) || null,
  );
  const interpreters = check("its list of interpreters is invalid", () =>
    listInterpreters(python, runtime, mainInterpreter),
  );
  check("an interpreter does not lead back to the runtime", () => {
    const { runtime: offset } = layout.interpreter;
    return (
      offset === null || interpreters.every((each) => reader.pointer(each + offset) === runtime)
    );
  });
  const threads = check("its threads do not lead back to their interpreter", () =>
    interpreters.flatMap((interpreter) => [...walkThreads(python, interpreter)]),
  );
  // A list that ends too early would also be consistent, but the main thread is the oldest and therefore the
  // last entry.
  check("its main thread is not among its threads", () => {
    const mainThread = reader.pointer(runtime + layout.runtime.mainThread);
    return threads.some(
      ({ interpreter, pthread }) => interpreter === mainInterpreter && pthread === mainThread,
    );
  });
  check("its threads are not threads of this process", () => {
    const tasks = memory.pid === null ? null : taskIds(memory.pid);
    return (
      tasks === null ||
      tasks.size === 0 ||
      threads.some(({ tid }) => tid !== null && tasks.has(tid))
    );
  });
  const sysDict = reader.pointer(mainInterpreter + layout.interpreter.sysDict);
  const typeType = check("the type of its types is not `type`", () => typeOfTypes(python, sysDict));
  const hexVersion = check("sys.hexversion cannot be read", () => {
    const value = dictGet(python, sysDict, "hexversion");
    return value === null ? null : readSmallInteger(python, value);
  });
  version = versionOf(hexVersion);
  check(`sys.hexversion says ${version}`, () => minorOf(version) === minorOf(layout.version));
  check("it is built with other options (sys.abiflags)", () => {
    const flags = dictGet(python, sysDict, "abiflags");
    const text =
      flags === null || !isA(python, flags, TypeFlag.Unicode) ? "" : readText(python, flags);
    const counts = dictGet(python, sysDict, "gettotalrefcount") !== null;
    return !text.includes("t") && counts === layout.debug;
  });
  return { version, interpreters, mainInterpreter, typeType };
}

/** All interpreters, the main one first; null if the list is invalid. Throws TM-E024. */
export function listInterpreters(
  { reader, layout }: PythonMemory,
  runtime: Address,
  main: Address,
): Address[] | null {
  const list: Address[] = [];
  let next = reader.pointer(runtime + layout.runtime.interpretersHead);
  while (next !== 0) {
    if (list.length === MOST_INTERPRETERS) {
      return null;
    }
    list.push(next);
    next = reader.pointer(next + layout.interpreter.next);
  }
  return list.includes(main) ? [main, ...list.filter((each) => each !== main)] : null;
}

/** &PyType_Type, found from a dict: its type is "dict", whose type is "type", which is its own type. */
function typeOfTypes(python: PythonMemory, dict: Address): Address | null {
  const dictType = typeOf(python, dict);
  const type = typeOf(python, dictType);
  return typeOf(python, type) === type &&
    typeName(python, type) === "type" &&
    typeName(python, dictType) === "dict"
    ? type
    : null;
}
