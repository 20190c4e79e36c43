/** Programs that report malloc's own figures, for testing readers outside the process. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { readStat } from "../src/linux/index.js";
import { itemAt } from "../src/model/base/columns.js";
import { present } from "../src/model/base/present.js";

/** mallinfo2's figures in the program, summed over all arenas; it counts thread caches as used. */
export interface MallocTruth {
  readonly arena: number;
  readonly fordblks: number;
  readonly fsmblks: number;
  readonly hblks: number;
  readonly hblkhd: number;
  readonly keepcost: number;
}

/** Defines `truth()`, whose own buffers are allocated before its first call. */
const PRELUDE = `
import ctypes, json, os, sys, threading
libc = ctypes.CDLL(None)
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
libc.mallinfo2.restype = Info
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def truth():
    info = libc.mallinfo2()
    return {name: getattr(info, name) for name, _ in Info._fields_}
`;

export interface Waiting {
  readonly pid: number;
  /** The line of JSON that the program printed when it was ready. */
  readonly said: Record<string, unknown>;
  /** Lets the program continue, and returns its next line. */
  go(): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
  /** Settles when the program has ended, by itself or not. */
  readonly ended: Promise<unknown>;
}

/** Starts Python with `truth()` and `say(value)`: prints a line and waits for a signal to continue. */
export async function startPython(
  { path, chroot }: { readonly path: string; readonly chroot?: string | undefined },
  program: string,
  environment: Record<string, string> = {},
): Promise<Waiting> {
  const say = `
out = os.fdopen(os.dup(1), "wb", 0)
def say(value):
    out.write(json.dumps(value).encode() + b"\\n"); os.read(0, 1)
`;
  const words = [path, "-c", PRELUDE + say + program];
  return await start(chroot === undefined ? words : ["chroot", chroot, ...words], environment);
}

/** Until a process that has printed a line is waiting for a byte: before, objects of its call of print() are still there. */
async function waits(pid: number): Promise<void> {
  for (let attempt = 0; attempt < 500 && readStat(pid)?.state !== "S"; attempt++) {
    await sleep(2);
  }
}

/** Starts a program that prints lines of JSON, and waits for a byte after each. */
export async function start(
  words: readonly string[],
  environment: Record<string, string> = {},
): Promise<Waiting> {
  const child: ChildProcess = spawn(itemAt(words, 0), words.slice(1), {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...environment },
  });
  const ended = once(child, "exit");
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const iterator = lines[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await iterator.next();
    if (done === true) {
      throw new Error(`${words[0]} ended before it said anything`);
    }
    await waits(present(child.pid));
    return JSON.parse(value) as Record<string, unknown>;
  };
  return {
    pid: present(child.pid),
    said: await next(),
    go: async () => {
      child.stdin?.write("\n");
      return await next();
    },
    stop: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    ended,
  };
}
