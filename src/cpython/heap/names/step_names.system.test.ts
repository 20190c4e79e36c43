import { expect, test } from "vitest";
import { anyInterpreter } from "../../../../test/environment.js";
import { startPython } from "../../../../test/python_program.js";
import { openProcessMemory } from "../../../linux/index.js";
import { float64At, itemAt, uint32At } from "../../../model/base/columns.js";
import { takeGraph } from "../census/paused_reads.js";
import { findRootPaths, nodesOfType } from "./root_paths.js";

const PROGRAM = `
class Kept: pass
def outer():
    kept = Kept()
    def inner(): return kept
    return inner
inner = outer()
say(1)`;

test("a closure whose tuple is replaced by another object after the graph was built", async () => {
  const program = await startPython(anyInterpreter(), PROGRAM);
  const memory = openProcessMemory(program.pid);
  const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, 0);
  const kept = nodesOfType(objects, "__main__.Kept");
  const wordsTo = () => findRootPaths(objects, kept).map(({ path }) => path.join(" -> "));
  expect(wordsTo()).toEqual([expect.stringContaining("closure variable kept")]);

  const { copy, graph, paths } = objects;
  const cell = uint32At(paths.before, itemAt(kept, 0));
  const tuple = float64At(graph.address, uint32At(paths.before, cell));
  copy.words[copy.index(tuple + 16) + 1] = 0x7fff; // its size becomes the upper half of an address
  expect(wordsTo()).toEqual([expect.not.stringContaining("closure variable kept")]);
  memory.close();
  await program.stop();
});
