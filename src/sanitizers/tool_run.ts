/** One run of a program under a tool, with the folder for the tool's reports. */
import type { StdioOptions } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type GroupEnd, startGroup } from "../inspect/index.js";
import { HOOKS_FOLDER } from "../linux/installation.js";
import { programNotStarted } from "../model/errors/program_errors.js";
import { runInterrupted, toolRunFailed } from "../model/errors/tool_errors.js";

/** What `memcheck` and `asan` are asked. */
export interface ToolRequest {
  readonly command: readonly string[];
  readonly all: boolean;
  readonly modules: readonly string[];
  readonly until: AbortSignal;
  /** Says in one line what begins now. */
  readonly note: (line: string) => void;
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
    PYTHONMALLOC: "malloc", // each object a block of its own, which the tool sees
    PYTHONPATH: before ? `${hook}:${before}` : hook,
    TIDEMARK_FRAMES: `${tool}:${folder}`,
    TIDEMARK: "off",
    ...more,
  };
}

interface RunOfTool {
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Whether input and output are the program's own, or none. */
  readonly isShown: boolean;
  readonly until: AbortSignal;
  /** Gets what the program writes to stderr, each byte as one character. */
  readonly takeErrors?: (text: string) => void;
}

/** Throws TM-E009 if it cannot be started, TM-E093 after an interrupt. */
export async function runTool(run: RunOfTool): Promise<GroupEnd> {
  const { isShown, takeErrors, ...request } = run;
  const shown: StdioOptions = takeErrors === undefined ? "inherit" : ["inherit", "inherit", "pipe"];
  const { child, end } = startGroup({ ...request, stdio: isShown ? shown : "ignore" });
  child.stderr?.on("data", (piece: Buffer) => takeErrors?.(piece.toString("latin1")));
  const closed =
    child.stderr === null
      ? null
      : new Promise((settle) => {
          child.stderr?.once("close", settle);
        });
  const result = await end;
  await closed;
  if (request.until.aborted) {
    throw runInterrupted();
  }
  if (result.startFailure !== null) {
    throw programNotStarted(request.command[0] ?? "", result.startFailure, 127);
  }
  return result;
}

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
