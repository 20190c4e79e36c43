/** Programs to attach to while they run, and checks that nothing has changed in them afterwards. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { itemAt } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import type { Profile } from "../../src/model/profile/profile.js";
import { type AttachResult, attachAndRecord, openRecording } from "../../src/record/index.js";
import type { Interpreter } from "../environment.js";

export const libraryPath = fileURLToPath(
  new URL("../../dist/native/libtidemark.so", import.meta.url),
);
export const scratch = mkdtempSync(join(tmpdir(), "tidemark-attach-"));

const started: ChildProcess[] = [];

/** Kills what {@link start} started, and its children. */
export function killAll(): void {
  for (const { pid } of started.splice(0)) {
    try {
      process.kill(-present(pid), "SIGKILL");
    } catch {} // all processes have ended
  }
}

export function removeScratch(): void {
  rmSync(scratch, { recursive: true, force: true });
}

export interface Target {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Everything it printed. */
  output(): string;
  /** Waits until its output contains the text or a match. Throws if it ends first. */
  said(text: string | RegExp): Promise<void>;
  ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export function nameOf({ version, sharedLibrary, chroot, freeThreaded }: Interpreter): string {
  return `${version} ${sharedLibrary ? "shared" : "static"}${chroot ? " in a chroot" : ""}${freeThreaded ? " free-threaded" : ""}`;
}

export function commandOf({ path, chroot }: Interpreter): string[] {
  return chroot ? ["chroot", chroot, path] : [path];
}

/** Starts a command; resolves once it has printed that it is up. */
export async function startCommand(
  command: readonly string[],
  env: NodeJS.ProcessEnv = {},
  ready = "up",
): Promise<Target> {
  const child = spawn(itemAt(command, 0), command.slice(1), {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...env },
    detached: true, // its own process group, to be killed as a whole
  });
  started.push(child);
  let output = "";
  const closed = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
  let wake = () => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      wake();
    });
  }
  child.on("close", () => wake());
  const target: Target = {
    pid: present(child.pid),
    child,
    output: () => output,
    async said(text) {
      while (!(typeof text === "string" ? output.includes(text) : text.test(output))) {
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`it ended (${child.exitCode ?? child.signalCode}): ${output}`);
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, 100);
        });
      }
    },
    ended: () => closed,
  };
  await target.said(ready);
  return target;
}

export function start(interpreter: Interpreter, source: string, env = {}): Promise<Target> {
  return startCommand([...commandOf(interpreter), "-u", "-c", source], env);
}

/** Records until the recording contains what is wanted; how long that takes depends on the process. */
export function attach(
  pid: number,
  options: Partial<Parameters<typeof attachAndRecord>[0]> = {},
): Promise<AttachResult> {
  const recordingPath = join(scratch, `${pid}-${Math.random().toString(36).slice(2)}.tidemark`);
  return attachAndRecord({
    pid,
    recordingPath,
    libraryPath,
    waitMs: 60_000,
    enough: (elapsedMs) => elapsedMs > 700,
    ...options,
  });
}

/** The newest profile of a recording that is still written; null before the first. */
export function profileSoFar(recordingPath: string): Profile | null {
  const recording = openRecording(recordingPath);
  return recording.snapshots.length === 0 ? null : recording.profileAt("end");
}

/** Descriptors and mappings of a process, to check that what an attach leaves behind is bounded. */
export function belongings(pid: number): { descriptors: number; mappings: number } {
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    mappings: readFileSync(`/proc/${pid}/maps`, "utf8").split("\n").length,
  };
}

/** Our files in the folders used to exchange data, as the process sees them. */
export function leftFiles(pid: number): string[] {
  return ["/tmp", "/var/tmp", "/dev/shm", "/run"].flatMap((folder) => {
    try {
      return readdirSync(`/proc/${pid}/root${folder}`).filter((name) =>
        name.startsWith(`.tidemark-${pid}-`),
      );
    } catch {
      return [];
    }
  });
}
