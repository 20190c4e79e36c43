/**
 * A table that does not belong to the process must lead to a refusal before the first write: each field off by
 * a word, each structure off by a word, another version's table, and memory with any contents.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anyInterpreter } from "../../../test/environment.js";
import { type Memory, openProcessMemory } from "../../linux/index.js";
import { present } from "../../model/base/present.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { LAYOUTS, type PythonLayout } from "../layouts/index.js";
import { checkStanding, type EntryPoint, findEntryPoint } from "./entry_point.js";
import { writeRequest } from "./pending_call.js";
import { remoteExec } from "./remote_exec.js";

let child: ChildProcess;
let memory: Memory;
let point: EntryPoint;

beforeAll(async () => {
  // Its threads sleep, so the memory that is read does not change.
  child = spawn(anyInterpreter().path, [
    "-uc",
    "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nprint('up')\ntime.sleep(600)",
  ]);
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  memory = openProcessMemory(present(child.pid));
  point = findEntryPoint(memory, present(child.pid));
});

afterAll(() => {
  child.kill("SIGKILL");
  memory.close();
});

type Group = "runtime" | "interpreter" | "thread" | "pending" | "gil";
/** The fields that a request depends on. */
const USED: Readonly<Record<Group, readonly string[]>> = {
  runtime: [
    "initialized",
    "finalizing",
    "interpretersHead",
    "interpretersMain",
    "mainThread",
    "gil",
  ],
  interpreter: ["id", "next", "threadsHead", "runtime", "gilPointer", "pending", "evalBreaker"],
  thread: ["previous", "next", "interpreter", "threadId"],
  pending: ["calls", "first", "next", "slots", "entrySize"],
  gil: [],
};

/**
 * Tries to write with a table to a process that does not exist. True if the write was refused before, or if the
 * wrong words of the table are read correctly and would have led to the right places.
 */
function refused(layout: PythonLayout): boolean {
  const wrong: EntryPoint = { ...point, pid: 2 ** 22 + 1, layout };
  try {
    const standing = checkStanding(wrong);
    const right = checkStanding(point);
    const { pending, evalBreaker } = layout.interpreter;
    if (
      standing.interpreter === right.interpreter &&
      standing.mainThread === right.mainThread &&
      String(standing.threads) === String(right.threads) &&
      pending === point.layout.interpreter.pending &&
      evalBreaker === point.layout.interpreter.evalBreaker &&
      layout.thread.evalBreaker === point.layout.thread.evalBreaker &&
      JSON.stringify(layout.pending) === JSON.stringify(point.layout.pending)
    ) {
      return true;
    }
    writeRequest(wrong, standing, "pass", "/none");
    return false;
  } catch (error) {
    return error instanceof TidemarkError && /TM-E034/.test(error.message);
  }
}

test("a process that is killed while it is paused is reported as ended", () => {
  const killed: EntryPoint = { ...point, pid: 2 ** 22 + 1 };
  expect(() => writeRequest(killed, checkStanding(point), "pass", "/none")).toThrow(/TM-E020/);
});

test("a process that becomes another program while it is read is reported as ended", async () => {
  const program = spawn(anyInterpreter().path, [
    "-uc",
    "import os\nprint('up')\ninput()\nos.execvp('sleep', ['sleep', '600'])",
  ]);
  await new Promise((resolve) => program.stdout?.once("data", resolve));
  const before = openProcessMemory(present(program.pid));
  program.stdin?.write("\n");
  await expect.poll(() => before.refresh()).toBe(false);
  expect(() => findEntryPoint(before, present(program.pid))).toThrow(/TM-E020/);
  before.close();
  program.kill("SIGKILL");
});

describe("a table that is off by a word", () => {
  const fields = Object.entries(USED).flatMap(([group, names]) =>
    names.flatMap((name) => [8, -8, 16].map((by) => [group as Group, name, by] as const)),
  );
  test.each(fields)("%s.%s by %d", (group, name, by) => {
    const right = point.layout[group] as Readonly<Record<string, number | null>>;
    const value = right[name];
    if (value == null) {
      return; // this version has no such field
    }
    const layout = { ...point.layout, [group]: { ...right, [name]: value + by } };
    expect(refused(layout)).toBe(true);
  });

  test.each(["runtime", "interpreter", "thread"] as const)("all of %s", (group) => {
    for (const by of [8, -8, 64]) {
      const moved = Object.fromEntries(
        Object.entries(point.layout[group]).map(([name, value]) => [
          name,
          value === null ? null : value + by,
        ]),
      );
      expect(refused({ ...point.layout, [group]: moved })).toBe(true);
    }
  });
});

test("every other version's table", () => {
  const own = `3.${point.minor}.`;
  for (const layout of LAYOUTS.filter(({ version }) => !version.startsWith(own))) {
    const answer = refused(layout);
    // 3.9 and 3.10 differ in only one word, which the version check distinguishes earlier.
    if (!(point.minor <= 10 && /^3\.(9|10)\./.test(layout.version))) {
      expect(answer, layout.version).toBe(true);
    }
  }
});

test("arbitrary memory: a typed error, in bounded time", () => {
  let seed = 7;
  const random = () => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return seed >>> 16;
  };
  for (let round = 0; round < 200; round++) {
    const start = point.runtime;
    const noisy: Memory = {
      pid: memory.pid,
      name: memory.name,
      mappings: memory.mappings,
      refresh: () => true,
      resident: (from, to) => memory.resident(from, to),
      openFile: (mapping) => memory.openFile(mapping),
      close() {},
      readInto(address, target) {
        const got = memory.readInto(address, target);
        // The bytes of _PyRuntime and of the structures that it points to, at their addresses.
        if (address + got > start) {
          for (let hit = 0; hit < 40; hit++) {
            target[random() % Math.max(1, got)] = random();
          }
        }
        return round % 3 === 0 ? Math.min(got, random() % 4096) : got;
      },
    };
    try {
      findEntryPoint(noisy, present(child.pid));
    } catch (error) {
      expect(error).toBeInstanceOf(TidemarkError);
    }
  }
});

test("the right table is accepted, and the process is unharmed", async () => {
  const { text } = await remoteExec(present(child.pid), "return 6 * 7", { waitMs: 30_000 });
  expect(text).toBe("42");
});
