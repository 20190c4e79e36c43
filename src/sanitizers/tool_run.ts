/** One run of a program under a tool, with the folder for the tool's reports. */
import type { StdioOptions } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type GroupEnd, type StartedPython, startGroup } from "../inspect/index.js";
import { CALLS_PATH, HOOKS_FOLDER } from "../linux/installation.js";
import type { Millis } from "../model/base/units.js";
import { programNotStarted } from "../model/errors/program_errors.js";
import { toolRunFailed } from "../model/errors/tool_errors.js";

/** The options that `memcheck` and `asan` share. */
export interface ToolRequest {
  readonly command: readonly string[];
  readonly all: boolean;
  readonly modules: readonly string[];
  readonly until: AbortSignal;
  /** Reports in one line which step begins. */
  readonly note: (line: string) => void;
  /** Called with the time since the start of a run, at growing intervals. */
  readonly onElapsed: (elapsedMs: Millis) => void;
}

/** Calls `work` with an empty folder, which is removed afterwards. */
export async function withReportFolder<Result>(
  work: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-reports-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The environment of a program whose reports get Python stacks. */
export function watchedEnvironment(
  tool: "memcheck" | "asan",
  folder: string,
  more: Readonly<Record<string, string>>,
): NodeJS.ProcessEnv {
  const before = process.env.PYTHONPATH;
  const hook = join(HOOKS_FOLDER, "frames");
  return {
    ...process.env,
    PYTHONMALLOC: "malloc", // gives each object its own block, which the tool sees
    PYTHONPATH: before ? `${hook}:${before}` : hook,
    TIDEMARK_FRAMES: `${tool}:${folder}`,
    TIDEMARK_CALLS: CALLS_PATH,
    TIDEMARK: "off",
    ...more,
  };
}

/** For `limits`: what is not known about a Python that is not CPython. */
export function otherPython(python: StartedPython | null): string[] {
  return python === null || python.implementation === "cpython"
    ? []
    : [
        `This Python is ${python.implementation}, with its own memory and garbage collector: only what C code allocates by malloc was checked, errors have no Python lines, and errors of the interpreter itself may be among them. CPython runs the same extension with full reports.`,
      ];
}

interface RunOfTool {
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Whether the run keeps the program's input and output, or has none. */
  readonly isShown: boolean;
  readonly until: AbortSignal;
  /** Called with the program's stderr, each byte as one character. */
  readonly takeErrors?: (text: string) => void;
  readonly onElapsed: ToolRequest["onElapsed"];
}

/** Time for an interrupted program to clean up and for the tool to write its findings; Valgrind is slow. */
const GRACE_MS = 15_000;
/** Time for what the program leaves running, such as multiprocessing's tracker, to end and to write its report. */
const LINGER_MS = 10_000;
const FIRST_ELAPSED_MS = 10_000;
const LONGEST_INTERVAL_MS = 300_000;

/** After an interrupt, it returns as soon as the program has ended. Throws TM-E009 if it cannot be started. */
export async function runTool(run: RunOfTool): Promise<GroupEnd> {
  const { isShown, takeErrors, onElapsed, ...request } = run;
  const shown: StdioOptions = takeErrors === undefined ? "inherit" : ["inherit", "inherit", "pipe"];
  const { child, end } = startGroup({
    ...request,
    isShown,
    endsDaemons: true,
    stdio: isShown ? shown : "ignore",
    graceMs: isShown ? GRACE_MS : 0,
    lingerMs: LINGER_MS,
  });
  const stopReporting = reportElapsed(onElapsed);
  child.stderr?.on("data", (piece: Buffer) => takeErrors?.(piece.toString("latin1")));
  const closed =
    child.stderr === null
      ? null
      : new Promise((settle) => {
          child.stderr?.once("close", settle);
        });
  const result = await end;
  stopReporting();
  await closed;
  if (result.startFailure !== null) {
    throw programNotStarted(request.command[0] ?? "", result.startFailure, 127);
  }
  return result;
}

/** Calls `onElapsed` after 10 s, 20 s, 40 s and so on, then every 5 minutes. Returns a function that ends this. */
function reportElapsed(onElapsed: ToolRequest["onElapsed"]): () => void {
  const started = performance.now();
  let timer: NodeJS.Timeout;
  const wait = (waitMs: Millis) => {
    timer = setTimeout(() => {
      const elapsedMs = performance.now() - started;
      onElapsed(elapsedMs);
      wait(Math.min(elapsedMs, LONGEST_INTERVAL_MS));
    }, waitMs);
  };
  wait(FIRST_ELAPSED_MS);
  return () => clearTimeout(timer);
}

/** For `limits`: the effect of an interrupt on the findings. */
export const INTERRUPTED =
  "Interrupted: the rest of the program was not checked, and a leak may be a block that the program still needed.";

/** Throws TM-E091 if a tool left no report at all. */
export function requireReports(count: number, tool: string, { exitCode, signal }: GroupEnd): void {
  if (count === 0) {
    throw toolRunFailed(
      `${tool} wrote no report: it ended with ${signal ?? `exit code ${exitCode}`}`,
      `${tool} could not start the program`,
      "run the program alone first, and check that it is a dynamically linked program of this machine",
    );
  }
}
