/** The document of `tidemark stacks`: the stacks of all threads and asyncio tasks. */
import {
  locatePython,
  type MixedFrame,
  type PythonFrame,
  readStacks,
  type Stacks,
} from "../../cpython/index.js";
import { openProcessMemory, readCommand, readStat, startTimeMs } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { StacksJson } from "../../model/documents/stacks_document.js";
import { Unwinder } from "../../native/index.js";

const NO_INTERPRETER = -1;

/**
 * @param native also native frames, and threads that run no Python. Throws TidemarkError if the process cannot
 * be read or runs no Python.
 */
export async function stacksDocument(pid: Pid, native: boolean): Promise<StacksJson> {
  const memory = openProcessMemory(pid);
  const unwinder = native ? new Unwinder(memory) : null;
  try {
    const python = locatePython(memory);
    const seen = await readStacks(python, unwinder);
    return documentOf(pid, python, seen);
  } finally {
    unwinder?.close();
    memory.close();
  }
}

function documentOf(
  pid: Pid,
  python: { readonly version: string; readonly interpreters: readonly number[] },
  seen: Stacks,
): StacksJson {
  const stat = readStat(pid);
  return {
    schema: "tidemark.stacks/1",
    target: {
      pid,
      command: readCommand(pid) ?? [],
      python: python.version,
      startedMs: stat === null ? 0 : startTimeMs(stat.startTicks),
    },
    atMs: seen.atMs,
    pauseMs: seen.pauseMs,
    threads: threadsOf(seen, python.interpreters),
    tasks: tasksOf(seen),
    limits: [...seen.limits],
  };
}

function threadsOf(
  { threads, nativeThreads }: Stacks,
  interpreters: readonly number[],
): StacksJson["threads"] {
  return [
    ...threads.map(({ thread, frames, mixed }) => ({
      tid: thread.task?.tid ?? 0,
      name: thread.name,
      holdsGil: thread.holdsGil,
      state: thread.task?.state ?? "",
      interpreter: interpreters.indexOf(thread.interpreter),
      frames: mixed?.map(mixedFrameOf) ?? frames.map(frameOf),
    })),
    ...nativeThreads.map(({ task, frames }) => ({
      tid: task.tid,
      name: task.name,
      holdsGil: false,
      state: task.state,
      interpreter: NO_INTERPRETER,
      frames: frames.map(mixedFrameOf),
    })),
  ];
}

function tasksOf({ threads, tasks }: Stacks): StacksJson["tasks"] {
  const tids = new Map(threads.map(({ thread }) => [thread.address, thread.task?.tid ?? 0]));
  const idOf = (address: number) => `0x${address.toString(16)}`;
  return tasks.map(({ address, name, runsOn, frames, waitsFor }) => ({
    id: idOf(address),
    name,
    ...(runsOn === null ? {} : { tid: tids.get(runsOn) ?? 0 }),
    frames: frames.map(frameOf),
    waitsFor: waitsFor.map(idOf),
  }));
}

function frameOf({ code, line }: PythonFrame): FrameJson {
  return { function: code.function, file: code.file, line, kind: "python" };
}

function mixedFrameOf(mixed: MixedFrame): FrameJson {
  switch (mixed.kind) {
    case "python":
      return frameOf(mixed.frame);
    case "native":
      return { function: mixed.frame.function, file: mixed.frame.file, line: 0, kind: "native" };
    case "mark":
      return { function: mixed.text, file: "", line: 0, kind: "mark" };
  }
}

interface StackSelection {
  /** At most this many threads, and tasks; 0: all. */
  readonly top?: number;
  /** Only threads and tasks whose name or stack contains this text, ignoring case. */
  readonly filter?: string;
}

export function selectStacks(
  document: StacksJson,
  { top = 0, filter }: StackSelection,
): StacksJson {
  const wanted = filter?.toLowerCase();
  const choose = <Row extends { name: string; frames: FrameJson[] }>(rows: Row[]) => {
    const matching = rows.filter(
      ({ name, frames }) =>
        wanted === undefined ||
        [name, ...frames.map((frame) => `${frame.function} ${frame.file}:${frame.line}`)]
          .join(" ")
          .toLowerCase()
          .includes(wanted),
    );
    return top === 0 ? matching : matching.slice(0, top);
  };
  return { ...document, threads: choose(document.threads), tasks: choose(document.tasks) };
}
