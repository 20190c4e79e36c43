/** Runs programs as a user does, alone and under `tidemark run`, and returns everything observable about them. */

import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { present } from "../src/model/base/present.js";
import type { SummaryJson } from "../src/model/documents/summary_document.js";
import { finishOrphan, openRecording } from "../src/record/index.js";
import type { Recording } from "../src/recording/types.js";

export const repository = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
export const tidemark = join(repository, "bin/tidemark");
export const programs = join(repository, "test/programs");

/** A program that has not ended by then is considered hung: it is killed and the test fails. */
const HANGS_AFTER_MS = 180_000;

export interface Outcome {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunSettings {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Text for stdin; without it stdin is /dev/null. */
  readonly input?: string;
  /** Options of `tidemark run`, before its `--`. */
  readonly options?: readonly string[];
  /** Words before the whole command, as in `nohup COMMAND`. */
  readonly before?: readonly string[];
  /** Folder of the recording; by default a new folder in the system's temporary folder. */
  readonly recording?: string;
  /** Called once the command has started, in its own process group. */
  readonly started?: (
    child: ChildProcess,
    files: { stdout: string; stderr: string },
  ) => void | Promise<void>;
}

export interface RecordedOutcome extends Outcome {
  /** Path of the recording. */
  readonly path: string;
  /** `tidemark summary` of it, as JSON, with every site. */
  summary(...options: string[]): Promise<SummaryJson>;
  open(): Recording;
}

const scratchFolders: string[] = [];

/** A folder that {@link removeScratch} removes; every user may write to it. */
export function scratch(below = tmpdir()): string {
  const folder = mkdtempSync(join(below, "tidemark-test-"));
  chmodSync(folder, 0o777);
  scratchFolders.push(folder);
  return folder;
}

/** For `afterAll`. */
export function removeScratch(): void {
  for (const folder of scratchFolders.splice(0)) {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The environment of a login shell in a folder, with nothing from the test runner. */
export function plainEnvironment(
  folder: string,
  extra: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const kept = ["PATH", "HOME", "LANG", "TMPDIR", "USER"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(kept), PWD: folder, PYTHONDONTWRITEBYTECODE: "1", ...extra };
}

/** Runs a command to its end. Its output goes to files, so that processes it leaves running do not block the test. */
export async function execute(
  command: readonly string[],
  settings: RunSettings = {},
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-test-"));
  const files = { stdout: join(folder, "stdout"), stderr: join(folder, "stderr") };
  const cwd = settings.cwd ?? folder;
  const stdout = openSync(files.stdout, "a");
  const stderr = openSync(files.stderr, "a");
  try {
    const [program, ...args] = [...(settings.before ?? []), ...command];
    const child = spawn(present(program), args, {
      cwd,
      env: plainEnvironment(cwd, settings.env),
      stdio: [settings.input === undefined ? "ignore" : "pipe", stdout, stderr],
      detached: true,
    });
    const ended = waitFor(child, command);
    if (settings.input !== undefined) {
      // A program that does not read its input may close the pipe.
      child.stdin?.on("error", () => undefined);
      child.stdin?.end(settings.input);
    }
    await settings.started?.(child, files);
    const { status, signal } = await ended;
    return {
      status,
      signal,
      stdout: readFileSync(files.stdout, "utf8"),
      stderr: readFileSync(files.stderr, "utf8"),
    };
  } finally {
    closeSync(stdout);
    closeSync(stderr);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a command under `tidemark run`. */
export async function record(
  command: readonly string[],
  settings: RunSettings = {},
): Promise<RecordedOutcome> {
  const path = settings.recording ?? join(scratch(), "run.tidemark");
  const outcome = await execute(
    [tidemark, "run", "-o", path, ...(settings.options ?? []), "--", ...command],
    settings,
  );
  return {
    ...outcome,
    path,
    summary: (...options) => summaryOf(path, ...options),
    open: () => open(path),
  };
}

export async function summaryOf(path: string, ...options: string[]): Promise<SummaryJson> {
  const { status, stdout, stderr } = await execute([
    tidemark,
    "summary",
    path,
    "--json",
    "--top",
    "0",
    ...options,
  ]);
  if (status !== 0) {
    throw new Error(`tidemark summary ended with ${status}: ${stderr}`);
  }
  return JSON.parse(stdout) as SummaryJson;
}

export function open(path: string): Recording {
  finishOrphan(path);
  return openRecording(path);
}

/** Waits for something that happens soon; a hang fails the test. */
export async function until(happened: () => boolean | Promise<boolean>): Promise<void> {
  const patience = Date.now() + (2 * HANGS_AFTER_MS) / 3;
  while (!(await happened())) {
    if (Date.now() > patience) {
      throw new Error(`waited, but nothing happened: ${happened}`);
    }
    await sleep(20);
  }
}

/** The current contents of a file; "" if it does not exist yet. */
export function readText(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

function waitFor(
  child: ChildProcess,
  command: readonly string[],
): Promise<Pick<Outcome, "status" | "signal">> {
  return new Promise((resolve, reject) => {
    const watch = setTimeout(() => {
      // The whole group, because the command's children hang with it.
      if (child.pid !== undefined) {
        process.kill(-child.pid, "SIGKILL");
      }
      reject(new Error(`still running after ${HANGS_AFTER_MS / 1000} s: ${command.join(" ")}`));
    }, HANGS_AFTER_MS);
    child.once("error", (error) => {
      clearTimeout(watch);
      reject(error);
    });
    child.once("exit", (status, signal) => {
      clearTimeout(watch);
      resolve({ status, signal });
    });
  });
}
