import { Command, Option } from "commander";
import {
  locatePython,
  type MixedFrame,
  type PythonFrame,
  readStacks,
  type Stacks,
} from "../../cpython/index.js";
import { openProcessMemory, readCommand, readStat, startTimeMs } from "../../linux/index.js";
import type { FrameJson } from "../../model/documents.js";
import type { StacksJson } from "../../model/stacks_document.js";
import type { Pid } from "../../model/units.js";
import { Unwinder } from "../../native/index.js";
import {
  type CommonOptions,
  parseCount,
  withCommonOptions,
  withExamples,
} from "../options/options.js";
import { parsePid } from "../options/pids.js";
import { requireLinux } from "../options/requirements.js";
import { printStacks } from "../screens/stacks.js";
import { printJson, screenOf } from "../text/output.js";

const NO_INTERPRETER = -1;

interface StacksOptions extends CommonOptions {
  readonly native?: boolean;
  readonly top?: number;
  readonly filter?: string;
}

export function buildCommand(): Command {
  const command = new Command("stacks")
    .description(
      "The Python stacks of all threads of a process, which one holds the GIL, and its asyncio tasks\n" +
        "with what each awaits. Read from outside; the process stands still for about a millisecond.",
    )
    .argument("<pid>", "the process", parsePid)
    .option(
      "--native",
      "native frames among the Python ones, and threads that run no Python (unwound from a copy, " +
        "once the process runs again)",
    )
    .addOption(
      new Option("--top <n>", "at most this many threads, and tasks (default all)").argParser(
        parseCount,
      ),
    )
    .option("--filter <text>", "only threads and tasks whose name or stack contains this text");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark stacks 4242",
    "tidemark stacks 4242 --native",
    "tidemark stacks 4242 --filter worker",
    "tidemark stacks 4242 --json",
  ).action(stacks);
}

async function stacks(pid: Pid, options: StacksOptions): Promise<void> {
  requireLinux();
  const document = select(await look(pid, options.native === true), options);
  if (options.json === true) {
    printJson(document);
  } else {
    printStacks(screenOf(process.stdout), document, options.quiet === true);
  }
}

async function look(pid: Pid, native: boolean): Promise<StacksJson> {
  const memory = openProcessMemory(pid);
  const unwinder = native ? new Unwinder(memory) : null;
  try {
    const python = locatePython(memory);
    const seen = await readStacks(python, unwinder);
    return documentOf(pid, python.version, python.interpreters, seen);
  } finally {
    unwinder?.close();
    memory.close();
  }
}

function documentOf(
  pid: Pid,
  version: string,
  interpreters: readonly number[],
  seen: Stacks,
): StacksJson {
  const stat = readStat(pid);
  const tids = new Map(seen.threads.map(({ thread }) => [thread.address, thread.task?.tid ?? 0]));
  const idOf = (address: number) => `0x${address.toString(16)}`;
  return {
    schema: "tidemark.stacks/1",
    target: {
      pid,
      command: readCommand(pid) ?? [],
      python: version,
      startedMs: stat === null ? 0 : startTimeMs(stat.startTicks),
    },
    atMs: seen.atMs,
    pauseMs: seen.pauseMs,
    threads: [
      ...seen.threads.map(({ thread, frames, mixed }) => ({
        tid: thread.task?.tid ?? 0,
        name: thread.name,
        holdsGil: thread.holdsGil,
        state: thread.task?.state ?? "",
        interpreter: interpreters.indexOf(thread.interpreter),
        frames: mixed?.map(mixedFrameOf) ?? frames.map(frameOf),
      })),
      ...seen.nativeThreads.map(({ task, frames }) => ({
        tid: task.tid,
        name: task.name,
        holdsGil: false,
        state: task.state,
        interpreter: NO_INTERPRETER,
        frames: frames.map(mixedFrameOf),
      })),
    ],
    tasks: seen.tasks.map(({ address, name, runsOn, frames, waitsFor }) => ({
      id: idOf(address),
      name,
      ...(runsOn === null ? {} : { tid: tids.get(runsOn) ?? 0 }),
      frames: frames.map(frameOf),
      waitsFor: waitsFor.map(idOf),
    })),
    limits: [...seen.limits],
  };
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

function select(document: StacksJson, { top = 0, filter }: StacksOptions): StacksJson {
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
