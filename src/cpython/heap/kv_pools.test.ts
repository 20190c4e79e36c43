import { expect, test } from "vitest";
import { environment } from "../../../test/environment.js";
import { startPython } from "../../../test/python_program.js";
import { openProcessMemory } from "../../linux/index.js";
import { countObjects, findKvPools, takeGraph } from "./index.js";

/** The books as vLLM's classes keep them; the classes themselves need a device to be loaded. */
const PROGRAM = `
class KvQueue:
    def __init__(self, free): self.num_free_blocks = free
class BlockPool:
    def __init__(self, blocks, free):
        self.num_gpu_blocks = blocks
        self.free_block_queue = KvQueue(free)
BlockPool.__module__ = "vllm.v1.core.block_pool"
pools = [BlockPool(12_000, 3_000), BlockPool(500, 3)]
say({})
`;
const pythons = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

test.each(pythons)("occupancy of a server's pool, Python $version", async (python) => {
  const program = await startPython(python, PROGRAM);
  const memory = openProcessMemory(program.pid);
  try {
    const expected = countObjects(memory).census.objects.reduce((sum, count) => sum + count, 0);
    const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, expected);
    const found = findKvPools(objects).sort((a, b) => b.blocks - a.blocks);
    expect(found.map(({ path: _, ...pool }) => pool)).toEqual([
      {
        type: "vllm.v1.core.block_pool.BlockPool",
        blocks: 12_000,
        freeBlocks: 3_000,
        occupancy: 0.75,
      },
      { type: "vllm.v1.core.block_pool.BlockPool", blocks: 500, freeBlocks: 3, occupancy: 0.994 },
    ]);
    expect(found[0]?.path).toEqual(["module __main__", "pools", "list[...]"]);
  } finally {
    memory.close();
    await program.stop();
  }
});
