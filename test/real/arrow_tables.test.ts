/** Memory that a library allocates without malloc, and the objects that hold it. */

import { afterEach, describe, expect, test } from "vitest";
import { lookUpHolders } from "../../src/holders/holder_lookup.js";
import { openProcessMemory } from "../../src/linux/index.js";
import { present } from "../../src/model/base/present.js";
import { bundledAllocators } from "../../src/native/index.js";
import { environment } from "../environment.js";
import { startPython, type Waiting } from "../python_program.js";

const program = `
import pyarrow
class Store:
    def __init__(self):
        self.batches = {}
    def put(self, count):
        for _ in range(count):
            self.batches[len(self.batches)] = pyarrow.table({"a": pyarrow.array(range(2000))})
store = Store()
store.put(40)
say({})
store.put(60)
say({})
`;
let waiting: Waiting;
afterEach(async () => await waiting.stop());

describe.skipIf(environment.packagesPython === null)("tables of Arrow", () => {
  test("objects of a library with its own allocator are counted, and their holder is named", async () => {
    waiting = await startPython({ path: present(environment.packagesPython) }, program);
    const memory = openProcessMemory(waiting.pid);
    const carried = bundledAllocators(memory);
    memory.close();
    expect(carried.map(({ library }) => library)).toContainEqual(
      expect.stringMatching(/^libarrow\.so/),
    );
    const unsampled = {
      growing: new Set<never>(),
      opened: [],
      libraries: carried.map(({ path }) => path),
      sampled: [],
    };
    const lookUp = () => lookUpHolders({ pid: waiting.pid, sites: [], unsampled });
    const tablesIn = ({ batch, census }: ReturnType<typeof lookUp>) => ({
      objects: census?.objects[census.types.indexOf("pyarrow.lib.Table")],
      row: batch?.rows.find(({ site }) => site.endsWith(" library pyarrow.lib.Table")),
    });
    expect(tablesIn(lookUp()).objects).toBe(40);
    await waiting.go();
    const { objects, row } = tablesIn(lookUp());
    expect(objects).toBe(100);
    expect(row).toMatchObject({
      looked: 100,
      held: 100,
      path: ["module __main__", "store", ".batches"],
      entries: 100,
    });
    // Types of the interpreter, and of libraries that use malloc, are not part of this test.
    const others = lookUpHolders({
      pid: waiting.pid,
      sites: [],
      unsampled: { ...unsampled, libraries: [] },
    });
    expect(others.batch?.rows).toEqual([]);
  });
});
