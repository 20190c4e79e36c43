/** Cells of a kernel have the numbers that its own compiler gave them, in the process and in a recording. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { environment } from "../../test/environment.js";
import { startPython } from "../../test/python_program.js";
import { takeGraph } from "../cpython/heap/index.js";
import { openProcessMemory } from "../linux/index.js";
import { present } from "../model/base/present.js";
import { readableFile } from "../model/profile/frame_text.js";
import { HolderReader } from "../recording/holder_reader.js";
import { kernelCells } from "./kernel_cells.js";

const KERNEL = `
from ipykernel.compiler import XCachingCompiler
compiler = XCachingCompiler()
files = [compiler.cache(f"table_{n} = load({n})", n) for n in range(1, 41)]
files[4] = compiler.cache("table_5 = load(5)", 300)
compiler._filename_map["<other>"] = 7
say({"files": files})
`;

test.skipIf(environment.packagesPython === null)(
  "a kernel's cells are shown by their numbers, and a cell that ran again by its last one",
  async () => {
    const waiting = await startPython({ path: present(environment.packagesPython) }, KERNEL);
    const memory = openProcessMemory(waiting.pid);
    try {
      const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, 0);
      const cells = kernelCells(objects);
      expect(cells).toHaveLength(40);
      const reader = new HolderReader();
      reader.add({ pid: waiting.pid, collector: null, rows: [], cells }, 0);
      const files = waiting.said.files as string[];
      const shown = reader.withCells([...files, "app.py"]).map(readableFile);
      const numbers = files.map((_, n) => (n === 4 ? 300 : n + 1));
      expect(shown).toEqual([...numbers.map((number) => `In [${number}]`), "app.py"]);
    } finally {
      memory.close();
      await waiting.stop();
    }
  },
);

test("a cell that no lookup has seen stays unnumbered; a recording without cells is unchanged", () => {
  const reader = new HolderReader();
  const file = join("/tmp", "ipykernel_71", "2750.py");
  expect(reader.withCells([file]).map(readableFile)).toEqual(["notebook cell"]);
  const damaged = { pid: 1, collector: null, rows: [], cells: [{ file, number: "5" }] };
  expect(() => reader.add(damaged, 0)).toThrow(/a cell/);
});
