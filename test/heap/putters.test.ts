/** Which functions add to containers, found from their bytecode, on every CPython here. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodesOfType, takeGraph } from "../../src/cpython/heap/index.js";
import { type CodeUses, CodeUsesReader } from "../../src/cpython/heap/objects/code_uses.js";
import { locatePython } from "../../src/cpython/index.js";
import { puttersInto } from "../../src/holders/container_putters.js";
import { openProcessMemory } from "../../src/linux/index.js";
import { float64At } from "../../src/model/base/columns.js";
import { environment } from "../environment.js";
import { start, type Waiting } from "../python_program.js";
import { repository } from "../run.js";

const source = readFileSync(join(repository, "test/heap/programs/putters.py"), "utf8");
const FILE = "/srv/putters.py";
const withGil = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

describe.each(
  withGil.map((one) => [`Python ${one.version}${one.chroot ? " (chroot)" : ""}`, one] as const),
)("%s", (_name, { path, chroot }) => {
  let waiting: Waiting;
  let uses: CodeUses[];

  beforeAll(async () => {
    const words = [path, "-c", `exec(compile(${JSON.stringify(source)}, "${FILE}", "exec"))`];
    waiting = await start(chroot === undefined ? words : ["chroot", chroot, ...words]);
    const memory = openProcessMemory(waiting.pid);
    const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, 0);
    const functions = nodesOfType(objects, "function").map((node) =>
      float64At(objects.graph.address, node),
    );
    uses = new CodeUsesReader(locatePython(memory), objects.copy).read(
      functions,
      (file) => file === FILE,
    );
    memory.close();
  });
  afterAll(() => waiting.stop());

  test.each([
    ["under a key of an attribute", ["module __main__", "STATS", ".by_route"], "observe"],
    ["by a method, over several lines", ["module __main__", "STATS", ".history"], "keep"],
    ["by a function of a module", ["module __main__", "STATS", ".heap"], "plan"],
    [
      "a variable of the function around it",
      ["module __main__", "ENTER", "closure variable waiting"],
      "enter",
    ],
    ["under a key of a global", ["module __main__", "SEEN"], "remember"],
    ["an argument", ["thread MainThread", "frame main (x.py:1)", "local registry"], "fill"],
  ])("%s", (_way, holder, putter) => {
    const found = puttersInto(holder, uses).map((frame) => frame.function.split(".").at(-1));
    expect(found).toEqual([putter]);
  });

  test("by the lines that add, only in the program's own files", () => {
    const [place] = puttersInto(["module __main__", "STATS", ".history"], uses);
    expect(place).toMatchObject({
      file: FILE,
      line: source.split("\n").findIndex((l) => l.includes("self.history.append(")) + 1,
    });
    expect(new Set(uses.map(({ file }) => file))).toEqual(new Set([FILE]));
  });
});
