/**
 * The Python stacks that python/tidemark/_hooks/frames/sitecustomize.py wrote beside the reports.
 *
 * | tool | how | precision |
 * |---|---|---|
 * | memcheck | agent/calls/calls.c asks Valgrind for its count of errors after each call | exact, or near: between two calls |
 * | memcheck, crash | faulthandler writes the stack in its signal handler | exact |
 * | asan | the sanitizer aborts, and faulthandler writes the stack in its signal handler | exact |
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Pid } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { PythonStackJson } from "../../model/documents/memcheck_document.js";
import type { Report } from "../reports/report.js";
import { isCrash } from "./explanations.js";
import { isInterpreter } from "./owners.js";

const LARGEST_FILE = 64 << 20;
/** Valgrind's number of the thread. */
const MAIN_THREAD = 1;

interface Interval {
  readonly from: number;
  readonly to: number;
  readonly isMainThread: boolean;
  readonly python: PythonStackJson;
}

/** An error that Valgrind did not report again, because it had reported the same C stack before. */
export interface Repeat {
  /** Instruction pointers of its C stack, leaf first. */
  readonly addresses: readonly string[];
  readonly python: PythonStackJson;
}

/** The stacks of one process under Valgrind, by where its report is in the XML file. */
export class XmlIntervals {
  readonly #intervals: Interval[] = [];
  readonly repeats: Repeat[] = [];
  readonly #end: number = Number.POSITIVE_INFINITY;
  readonly #fault: PythonStackJson | undefined;

  constructor(folder: string, pid: Pid, reports: readonly Report[]) {
    for (const line of readLines(join(folder, `frames.${pid}`))) {
      const interval = intervalOf(line);
      if (interval !== null && interval.addresses.length > 0) {
        this.repeats.push(interval);
      } else if (interval !== null) {
        this.#intervals.push(interval);
      }
    }
    if (reports.some(isCrash)) {
      // The hook does not run any more, but faulthandler does, in its signal handler.
      this.#end = this.#intervals.at(-1)?.to ?? 0;
      this.#fault = faultStack(folder, pid);
    }
  }

  /** null for a thread that runs no Python code, or if several threads could have caused the error. */
  at({ offset, thread, stack }: Report): PythonStackJson | undefined {
    if (offset > this.#end) {
      return this.#fault;
    }
    const found = this.#intervals.filter(
      ({ from, to, isMainThread }) =>
        offset > from && offset <= to && isMainThread === (thread === MAIN_THREAD),
    );
    const isNative =
      stack.at(-1)?.function === "clone" && !stack.some(({ object }) => isInterpreter(object));
    return found.length === 1 && !isNative ? found[0]?.python : undefined;
  }
}

function intervalOf(line: string): (Interval & Repeat) | null {
  try {
    const [from, to, isExact, isMainThread, frames, addresses] = JSON.parse(line) as [
      ...[number, number, boolean, boolean],
      ...[unknown[], string[]],
    ];
    const stack = frames.flatMap((frame): FrameJson[] => {
      const [name, file, number] = frame as [unknown, unknown, unknown];
      return typeof name === "string" && typeof file === "string" && typeof number === "number"
        ? [{ function: name, file, line: number, kind: "python" }]
        : [];
    });
    const python: PythonStackJson = { stack, precision: isExact ? "exact" : "near" };
    return { from, to, isMainThread, python, addresses: addresses.map(String) };
  } catch {
    return null; // the last line of a process that was killed
  }
}

const FAULT_FRAME = /^ {2}File "(.*)", line (\d+) in (.*)$/;

/** The stack of the thread that aborted, from what faulthandler wrote. */
export function faultStack(folder: string, pid: Pid): PythonStackJson | undefined {
  const stack: FrameJson[] = [];
  let isCurrent = false;
  for (const line of readLines(join(folder, `fault.${pid}`))) {
    const [, file = "", number = "", name = ""] = FAULT_FRAME.exec(line) ?? [];
    if (line.startsWith("Current thread ")) {
      isCurrent = true;
    } else if (file !== "" && isCurrent) {
      stack.push({ function: name, file, line: Number(number), kind: "python" });
    } else if (stack.length > 0) {
      break;
    }
  }
  return stack.length === 0 ? undefined : { stack, precision: "exact" };
}

function readLines(path: string): string[] {
  try {
    return statSync(path).size > LARGEST_FILE ? [] : readFileSync(path, "utf8").split("\n");
  } catch {
    return [];
  }
}

/** Files in `folder` whose names are a prefix and a pid, ascending by pid. */
export function filesOfProcesses(folder: string, prefix: string): { path: string; pid: Pid }[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => ({
      path: join(folder, name),
      pid: Number(/\d+/.exec(name.slice(prefix.length))?.[0]),
    }))
    .sort((a, b) => a.pid - b.pid);
}
