/**
 * The entry point of a live interpreter, and all checks that its structures match the tables.
 *
 *   _PyRuntime ──interpreters.main──> interpreter 0 ──threads──> thread ─> thread ─> ...
 *       ^                                 │   ^                     │
 *       └─────────────runtime─────────────┘   └────interpreter──────┘
 *
 * Every arrow is followed in both directions. If one does not hold, the build has different structures and the
 * process is not touched, because a write at a wrong offset would crash it.
 *
 * | what is found | outcome |
 * |---|---|
 * | no exported _PyRuntime | not a CPython that can be attached to: TM-E034 |
 * | a version without a table, free-threaded, Py_DEBUG | TM-E034, named |
 * | starting or finalizing | TM-E034 |
 * | _PyRuntime twice (a host with two interpreters) | TM-E034 |
 * | an arrow that does not hold | TM-E034 |
 */

import {
  DynamicSymbols,
  isLeaving,
  type Memory,
  MemoryReader,
  readStat,
} from "../../linux/index.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { present } from "../../model/base/present.js";
import { OLDEST_PYTHON_MINOR } from "../../model/base/python_versions.js";
import type { Address, Millis, Pid } from "../../model/base/units.js";
import { targetUnknown } from "../../model/errors/attach_errors.js";
import { noInterpreter, processGone } from "../../model/errors/errors.js";
import { knownFacts, VERSION_FACTS } from "../interpreter/version_facts.js";
import { LAYOUTS, type PythonLayout } from "../layouts/index.js";

const MOST_THREADS = 65_536;
const MOST_INTERPRETERS = 1024;
const FEWEST_ATTEMPTS = 20;
const LOOKING_MS: Millis = 100;
/** "xdebugpy", which opens _Py_DebugOffsets. */
const COOKIE = "xdebugpy";
/** `mov $15, %rax; syscall`: glibc's return path of signal handlers. */
const RESTORER = Buffer.from([0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]);

export interface EntryPoint {
  readonly pid: Pid;
  readonly reader: MemoryReader;
  /** "3.11.7", or "3.9" if the interpreter exports no more. */
  readonly version: string;
  readonly minor: number;
  readonly layout: PythonLayout;
  readonly runtime: Address;
  /** int PyRun_SimpleString(const char *). */
  readonly run: Address;
  /** PyGILState_Ensure and _Release, and the return path of handlers; null if one cannot be found. */
  readonly call: {
    readonly acquire: Address;
    readonly release: Address;
    readonly restorer: Address;
  } | null;
  /** Slots of `_Py_DebugOffsets.debugger_support`; null before 3.14. */
  readonly debugger: DebuggerOffsets | null;
}

/** PEP 768 data, as published by the interpreter. Offsets in bytes. */
interface DebuggerOffsets {
  readonly evalBreaker: number;
  readonly support: number;
  readonly enabled: number;
  readonly pendingCall: number;
  readonly path: number;
  readonly pathBytes: number;
}

/** State that may change between two stops; read while the process is paused. */
export interface Standing {
  readonly interpreter: Address;
  /** Thread states of the main interpreter. */
  readonly threads: readonly Address[];
  /** Thread state of the main thread. */
  readonly mainThread: Address;
  readonly interpreters: number;
  /** Whether the main thread holds the interpreter's lock. */
  readonly mainHoldsLock: boolean;
}

/** Throws TidemarkError (TM-E020, TM-E022, TM-E034); writes nothing. */
export function findEntryPoint(memory: Memory, pid: Pid): EntryPoint {
  try {
    return readEntryPoint(memory, pid);
  } catch (error) {
    // If it has ended or has become another program (exec), its memory no longer shows what it was.
    throw isLeaving(readStat(pid)) || !memory.refresh() ? processGone(pid) : error;
  }
}

function readEntryPoint(memory: Memory, pid: Pid): EntryPoint {
  const reader = new MemoryReader(memory);
  const owners = [...DynamicSymbols.all(memory)].filter(
    (object) => object.find("_PyRuntime") !== null,
  );
  const [owner] = owners;
  if (owner === undefined) {
    throw noInterpreter(`process ${pid}`);
  }
  if (owners.length > 1) {
    throw targetUnknown(pid, "it contains two interpreters");
  }
  const runtime = present(owner.find("_PyRuntime"));
  const { version, minor } = readVersion(reader, owner, pid);
  const run = owner.find("PyRun_SimpleString");
  if (run === null) {
    throw targetUnknown(pid, "its interpreter exports no PyRun_SimpleString");
  }
  // Only debug builds count all references.
  const debug = owner.find("_Py_NegativeRefcount") !== null;
  const table = debug ? undefined : tableOf(version, minor);
  if (table === undefined) {
    throw targetUnknown(
      pid,
      debug
        ? `it is a debug build of CPython ${version} (Py_DEBUG)`
        : `this Tidemark has no table of CPython ${version}`,
    );
  }
  const acquire = owner.find("PyGILState_Ensure");
  const release = owner.find("PyGILState_Release");
  const restorer = findRestorer(memory);
  const point: EntryPoint = {
    pid,
    reader,
    version,
    minor,
    layout: withPublished(reader, runtime, table, pid),
    runtime,
    run,
    call:
      acquire !== null && release !== null && restorer !== null
        ? { acquire, release, restorer }
        : null,
    debugger: readDebugger(reader, runtime, minor, pid),
  };
  checkRunning(point);
  return point;
}

/**
 * Reads without a pause, so that a refusal does not cost the process anything. A read can be torn while threads
 * start and end, and several in a row just after a fork.
 */
function checkRunning(point: EntryPoint): void {
  const untilMs = monotonicMs() + LOOKING_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      checkStanding(point);
      return;
    } catch (error) {
      if (attempt >= FEWEST_ATTEMPTS && monotonicMs() >= untilMs) {
        throw error;
      }
    }
  }
}

/** Follows every arrow again. Throws TM-E034. Exact only while the process is paused. */
export function checkStanding(point: EntryPoint): Standing {
  const { reader, layout, runtime, pid } = point;
  reader.forget();
  try {
    if (reader.int32(runtime + layout.runtime.initialized) !== 1) {
      throw targetUnknown(pid, "its interpreter has not started yet, or has ended");
    }
    if (reader.pointer(runtime + layout.runtime.finalizing) !== 0) {
      throw targetUnknown(pid, "its interpreter is shutting down");
    }
    const interpreter = reader.pointer(runtime + layout.runtime.interpretersMain);
    demand(point, interpreter % 8 === 0 && interpreter > 0, "main interpreter");
    demand(point, reader.pointer(interpreter + layout.interpreter.runtime) === runtime, "runtime");
    demand(point, reader.int64(interpreter + layout.interpreter.id) === 0, "interpreter's id");
    const interpreters = countInterpreters(point, interpreter);
    const threads = readThreads(point, interpreter);
    const id = reader.uint64(runtime + layout.runtime.mainThread);
    const mainThread = threads.find(
      (thread) => reader.uint64(thread + layout.thread.threadId) === id,
    );
    if (mainThread === undefined) {
      throw targetUnknown(pid, "its main thread has left Python");
    }
    return {
      interpreter,
      threads,
      mainThread,
      interpreters,
      mainHoldsLock: holdsLock(point, interpreter, mainThread),
    };
  } catch (error) {
    if (error instanceof Error && /TM-E024/.test(error.message)) {
      throw targetUnknown(
        pid,
        `the structures of CPython ${point.version} are not at the expected place`,
      );
    }
    throw error;
  }
}

/** The table of exactly this version, otherwise the nearest lower one of the same minor version. */
function tableOf(version: string, minor: number): PythonLayout | undefined {
  const micro = (of: string) => Number(of.split(".")[2] ?? 0);
  const tables = LAYOUTS.filter((table) => !table.debug && table.version.startsWith(`3.${minor}.`));
  return tables.findLast((table) => micro(table.version) <= micro(version)) ?? tables[0];
}

export function demand(point: EntryPoint, holds: boolean, what: string): asserts holds {
  if (!holds) {
    throw targetUnknown(
      point.pid,
      `the structures of CPython ${point.version} do not match the table of ${point.layout.version} (${what})`,
    );
  }
}

function countInterpreters(point: EntryPoint, main: Address): number {
  const { reader, layout, runtime } = point;
  let found = false;
  let count = 0;
  let at = reader.pointer(runtime + layout.runtime.interpretersHead);
  for (; at !== 0 && count < MOST_INTERPRETERS; count++) {
    found ||= at === main;
    at = reader.pointer(at + layout.interpreter.next);
  }
  demand(point, found && at === 0, "list of interpreters");
  return count;
}

function readThreads(point: EntryPoint, interpreter: Address): Address[] {
  const { reader, layout } = point;
  const threads: Address[] = [];
  let previous = 0;
  let at = reader.pointer(interpreter + layout.interpreter.threadsHead);
  for (; at !== 0 && threads.length < MOST_THREADS; ) {
    demand(point, at % 8 === 0, "thread state");
    demand(
      point,
      reader.pointer(at + layout.thread.interpreter) === interpreter,
      "thread's interpreter",
    );
    demand(point, reader.pointer(at + layout.thread.previous) === previous, "list of threads");
    threads.push(at);
    previous = at;
    at = reader.pointer(at + layout.thread.next);
  }
  demand(point, at === 0 && threads.length > 0, "list of threads");
  return threads;
}

function holdsLock(point: EntryPoint, interpreter: Address, thread: Address): boolean {
  const { reader, layout, runtime } = point;
  const gil =
    layout.runtime.gil !== null
      ? runtime + layout.runtime.gil
      : reader.pointer(interpreter + present(layout.interpreter.gilPointer));
  const locked = reader.int32(gil + layout.gil.locked);
  demand(point, locked === 0 || locked === 1, "interpreter's lock");
  return locked === 1 && reader.pointer(gil + layout.gil.lastHolder) === thread;
}

/** From `Py_Version`, or from the newest exported function if there is no Py_Version. */
function readVersion(reader: MemoryReader, owner: DynamicSymbols, pid: Pid) {
  const exported = owner.find("Py_Version");
  if (exported !== null) {
    const hex = reader.uint32(exported);
    const minor = (hex >>> 16) & 0xff;
    return { version: `${hex >>> 24}.${minor}.${(hex >>> 8) & 0xff}`, minor };
  }
  const facts = VERSION_FACTS.findLast(
    ({ addedFunction }) => addedFunction !== null && owner.find(addedFunction) !== null,
  );
  if (facts === undefined) {
    throw targetUnknown(pid, `its CPython is older than 3.${OLDEST_PYTHON_MINOR}`);
  }
  return { version: `3.${facts.minor}`, minor: facts.minor };
}

/**
 * The table, with the values that the interpreter publishes replaced (_Py_DebugOffsets, which opens
 * _PyRuntime from 3.13 on: a cookie, the version, "free-threaded", then one u64 for each offset).
 */
function withPublished(
  reader: MemoryReader,
  runtime: Address,
  table: PythonLayout,
  pid: Pid,
): PythonLayout {
  if (table.published === null) {
    return table;
  }
  if (Buffer.from(reader.bytes(runtime, 8)).toString("latin1") !== COOKIE) {
    throw targetUnknown(pid, "_PyRuntime does not begin like that of CPython 3.13 or newer");
  }
  if (reader.uint64(runtime + 16) !== 0) {
    throw targetUnknown(pid, "it is a free-threaded build, which Tidemark cannot attach to");
  }
  const merged: Record<string, Record<string, unknown>> = {
    runtime: { ...table.runtime },
    interpreter: { ...table.interpreter },
    thread: { ...table.thread },
  };
  for (const [name, slot] of Object.entries(table.published.slots)) {
    const [group = "", field = ""] = name.split(".");
    if (merged[group] !== undefined) {
      merged[group][field] = reader.uint64(runtime + slot);
    }
  }
  return { ...table, ...merged };
}

/** The debugger's seven slots have the same offsets in every build of a minor version. */
function readDebugger(
  reader: MemoryReader,
  runtime: Address,
  minor: number,
  pid: Pid,
): DebuggerOffsets | null {
  const slot = knownFacts(minor)?.debuggerSupport ?? null;
  if (slot === null) {
    return null;
  }
  const [evalBreaker, support, enabled, pendingCall, path, pathBytes] = Array.from(
    { length: 6 },
    (_, index) => reader.uint64(runtime + slot + index * 8),
  ) as [number, number, number, number, number, number];
  const near = (offset: number, bound: number) => offset > 0 && offset < bound;
  const sane =
    pathBytes === 512 &&
    path === 4 &&
    pendingCall === 0 &&
    evalBreaker % 8 === 0 &&
    near(evalBreaker, 1024) &&
    near(support, 4096) &&
    near(enabled, 2 ** 20);
  if (!sane) {
    throw targetUnknown(pid, "its published data for debuggers (PEP 768) is invalid");
  }
  return { evalBreaker, support, enabled, pendingCall, path, pathBytes };
}

function findRestorer(memory: Memory): Address | null {
  const piece = Buffer.alloc(1 << 20);
  for (const mapping of memory.mappings) {
    if (!mapping.executable || !mapping.readable || !/\/libc[.-][^/]*$/.test(mapping.path)) {
      continue;
    }
    for (let at = mapping.start; at < mapping.end; at += piece.length - RESTORER.length) {
      const wanted = piece.subarray(0, Math.min(piece.length, mapping.end - at));
      const found = wanted.subarray(0, memory.readInto(at, wanted)).indexOf(RESTORER);
      if (found >= 0) {
        return at + found;
      }
    }
  }
  return null;
}
