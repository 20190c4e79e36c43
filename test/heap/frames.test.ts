/** Names of objects that functions hold in their locals, on every CPython here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findRootPaths, type TakenGraph, takeGraph } from "../../src/cpython/heap/index.js";
import { type Memory, openProcessMemory } from "../../src/linux/index.js";
import { environment } from "../environment.js";
import { start, type Waiting } from "../python_program.js";
import { repository } from "../run.js";

const program = join(repository, "test/heap/programs/frames.py");
const source = readFileSync(program, "utf8");
/** The line of a function. */
const line = (text: string) =>
  source.split("\n").findIndex((candidate) => candidate.includes(text)) + 1;

const withGil = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

describe.each(
  withGil.map((one) => [`Python ${one.version}${one.chroot ? " (chroot)" : ""}`, one] as const),
)("%s", (_name, { path, chroot }) => {
  let waiting: Waiting;
  let memory: Memory; // kept open while names are looked up: constants are not copied
  let taken: TakenGraph;
  // Compiled from source text, so that a program in a chroot can also use it.
  const file = "frames.py";

  beforeAll(async () => {
    const run = `exec(compile(${JSON.stringify(source)}, "/srv/${file}", "exec"))`;
    const words = [path, "-c", run];
    waiting = await start(chroot === undefined ? words : ["chroot", chroot, ...words]);
    memory = openProcessMemory(waiting.pid);
    taken = await takeGraph(memory, { maxPauseMs: 60_000 }, 0);
  });
  afterAll(async () => {
    memory.close();
    await waiting.stop();
  });

  test.each([
    [
      "argument",
      ["thread MainThread", `frame serve (${file}:${line("os.read")})`, "local sessions"],
    ],
    [
      "local of a thread",
      ["thread worker", `frame in_thread (${file}:${line("Event().wait()")})`, "local own"],
    ],
    [
      "cell",
      ["thread worker", `frame in_thread (${file}:${line("Event().wait()")})`, "local shared"],
    ],
    [
      "local of a generator",
      ["module __main__", "PRODUCED", `generator produce (${file}:${line("yield")})`, "local kept"],
    ],
    [
      "argument of a generator",
      [
        "module __main__",
        "PRODUCED",
        `generator produce (${file}:${line("yield")})`,
        "local items",
      ],
    ],
    [
      "local of a traceback",
      [
        "module __main__",
        "FAILED",
        ".__traceback__",
        ".tb_frame",
        `frame fail (${file}:${line("raise ValueError")})`,
        "local evidence",
      ],
    ],
    ["inherited slot", ["module __main__", "SLOTS", ".second"]],
    ["slot", ["module __main__", "SLOTS", ".third"]],
    ["partial", ["module __main__", "PARTIAL", ".args", "tuple[...]"]],
  ] as const)("%s", (name, words) => {
    const node = taken.objects.index.at(Number(waiting.said[name]));
    expect(node).toBeGreaterThan(0);
    expect(findRootPaths(taken.objects, [node])[0]?.path).toEqual(words);
  });

  test("a waiting coroutine, held by the holder of its task", () => {
    const node = taken.objects.index.at(Number(waiting.said["local of a coroutine"]));
    const words = findRootPaths(taken.objects, [node])[0]?.path;
    expect(words?.slice(-2)).toEqual([
      `coroutine handle (${file}:${line("await asyncio.Event")})`,
      "local payload",
    ]);
  });
});
