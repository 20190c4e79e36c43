/** Programs to unwind: compiled by the tests, paused and copied. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import {
  copyThreads,
  type HeldThread,
  type Memory,
  openProcessMemory,
  ProcessHolder,
  readTasks,
  StackRoom,
} from "../../linux/index.js";
import { present } from "../../model/base/present.js";
import type { NativeStack } from "../../model/profile/native_stack.js";
import { Unwinder } from "./unwinder.js";

export const OPTIMISED: readonly string[] = ["-O2", "-fomit-frame-pointer"];

export class Programs {
  readonly directory = mkdtempSync(join(tmpdir(), "tidemark-unwind-"));
  readonly #started: ChildProcess[] = [];

  /** @param source name of a fixture in C in this folder */
  compile(source: string, name: string, options: readonly string[]): string {
    const path = join(this.directory, name);
    const from = fileURLToPath(new URL(`./${source}.fixture.c`, import.meta.url));
    execFileSync(process.env.CC ?? "cc", ["-w", "-pthread", ...options, "-o", path, from]);
    return path;
  }

  /** The pid, once the program reports that it is ready. */
  async run(path: string): Promise<number> {
    const child = spawn(path, { stdio: ["pipe", "pipe", "inherit"] });
    this.#started.push(child);
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    return present(child.pid);
  }

  stop(): void {
    for (const child of this.#started.splice(0)) {
      child.kill("SIGKILL");
    }
  }

  remove(): void {
    rmSync(this.directory, { recursive: true });
  }
}

export async function copyHeld(memory: Memory, holder: ProcessHolder): Promise<HeldThread[]> {
  await holder.hold(20_000);
  try {
    return copyThreads(memory, await holder.registers(), new StackRoom());
  } finally {
    await holder.release();
  }
}

export async function copyOnce(memory: Memory, pid: number): Promise<HeldThread[]> {
  const holder = new ProcessHolder(pid);
  try {
    return await copyHeld(memory, holder);
  } finally {
    holder.close();
  }
}

/** By the name of the thread. */
export async function stacksOf(pid: number): Promise<Map<string, NativeStack>> {
  const names = new Map(readTasks(pid).map(({ tid, name }) => [tid, name]));
  const memory = openProcessMemory(pid);
  const unwinder = new Unwinder(memory);
  try {
    const threads = await copyOnce(memory, pid);
    return new Map(threads.map((thread) => [names.get(thread.tid) ?? "", unwinder.unwind(thread)]));
  } finally {
    unwinder.close();
    memory.close();
  }
}

const NOWHERE = "code outside any object file";

/** The program's own functions in each thread, leaf first. */
export const CHAINS: Readonly<Record<string, readonly string[]>> = {
  nested: ["sleeps", "nested_inner", "nested_middle", "nested"],
  frames: ["sleeps", "with_alloca", "with_alignment", "with_both", "with_large_frame", "frames"],
  arguments: ["sleeps", "with_arguments", "saves_registers", "arguments"],
  callback: ["sleeps", "compares", "sorts", "callback"],
  polling: ["polls", "polling"],
  locking: ["locks", "locking"],
  reading: ["reads", "reading"],
  handler: [
    "sleeps",
    "handles_inner",
    "handles",
    "interrupted_leaf",
    "interrupted_outer",
    "handler",
  ],
  ownstack: [
    "sleeps",
    "handles_inner",
    "handles",
    "interrupted_leaf",
    "interrupted_outer",
    "ownstack",
  ],
  trampoline: ["sleeps", NOWHERE, "calls_trampoline", "trampoline"],
  assembly: ["sleeps", "assembly_kernel", "calls_assembly", "assembly"],
  framepointer: ["sleeps", NOWHERE, "calls_frame_pointer", "framepointer"],
};

const OWN = new Set([...Object.values(CHAINS).flat(), "main"]);
export const ownFrames = ({ frames }: NativeStack) =>
  frames.map((frame) => frame.function).filter((name) => OWN.has(name));

/** Threads are ready once they were started. Wherever they are a moment later, all call chains must be correct. */
export async function settled(pid: number): Promise<Map<string, NativeStack>> {
  let stacks = new Map<string, NativeStack>();
  await expect
    .poll(
      async () => {
        stacks = await stacksOf(pid);
        return [...stacks.values()].filter((stack) =>
          /sleeps|polls|reads|locks/.test(ownFrames(stack)[0] ?? ""),
        ).length;
      },
      { timeout: 60_000 },
    )
    .toBe(Object.keys(CHAINS).length + 2); // and main, and the deep thread
  return stacks;
}
