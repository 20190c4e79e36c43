/** Compares retained sizes of common containers with the interpreter's own sizes. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { takeGraph } from "../../src/cpython/heap/index.js";
import { openProcessMemory } from "../../src/linux/index.js";
import { float64At } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { start, type Waiting } from "../python_program.js";
import { repository } from "../run.js";

const program = readFileSync(join(repository, "test/heap/programs/containers.py"), "utf8");
let waiting: Waiting | null = null;
afterEach(async () => await waiting?.stop());

const withGil = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

test.each(withGil)("Python $version at $path", async ({ path, chroot }) => {
  const words = [path, "-c", program];
  waiting = await start(chroot === undefined ? words : ["chroot", chroot, ...words]);
  const memory = openProcessMemory(waiting.pid);
  const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, 0);
  memory.close();
  const said = waiting.said as Record<string, [address: string, bytes: number]>;
  const retained = (name: string) =>
    float64At(objects.tree.retained, objects.index.at(Number(said[name]?.[0])));
  for (const name of ["LARGE_SET", "NUMBERS", "RECORDS", "CACHE"]) {
    const expected = present(said[name]?.[1]);
    // Numbers and strings that the interpreter shares are not retained by any one container.
    expect(retained(name) / expected, name).toBeGreaterThan(0.97);
    // From 3.11 on attributes are in a separate values array, which getsizeof leaves out.
    expect(retained(name) / expected, name).toBeLessThan(name === "CACHE" ? 1.2 : 1.03);
  }
  expect(retained("BUFFER")).toBeGreaterThanOrEqual(present(said.BUFFER?.[1]));
  expect(retained("FAILED")).toBeGreaterThanOrEqual(present(said.FAILED?.[1]));
  // 5,000 lists of two items, each with its string and its entry.
  expect(retained("compute")).toBeGreaterThan(5000 * (72 + 50 + 80));
});
