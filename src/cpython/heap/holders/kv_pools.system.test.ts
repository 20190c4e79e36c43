import { expect, test } from "vitest";
import { environment } from "../../../../test/environment.js";
import { startPython } from "../../../../test/python_program.js";
import { openProcessMemory } from "../../../linux/index.js";
import { present } from "../../../model/base/present.js";
import { countObjects, findKvPools, takeGraph } from "../index.js";

/** The bookkeeping as the servers' classes do it; the classes themselves need a device to be loaded. */
const NUMBERS = `
class KvQueue:
    def __init__(self, free): self.num_free_blocks = free
class BlockPool:
    def __init__(self, blocks, free):
        self.num_gpu_blocks = blocks
        self.free_block_queue = KvQueue(free)
BlockPool.__module__ = "vllm.v1.core.block_pool"
class PhysicalAllocator:
    def __init__(self, blocks, free):
        self._num_blocks = blocks
        self._free_count = free
class LogicalAllocator:
    def __init__(self):
        self._gpu_allocator = PhysicalAllocator(1_000, 250)
        self._cpu_allocator = PhysicalAllocator(4_000, 4_000)
        self._num_blocks = 5_000
        self._free_count = 4_250
LogicalAllocator.__module__ = "lmdeploy.pytorch.paging.block_manager.base_block_manager"
class KvCacheAllocator:
    def __init__(self, size, free):
        self.size = size
        self.can_use_mem_size = free
KvCacheAllocator.__module__ = "lightllm.common.kv_cache_mem_manager.allocator"
class Unused:
    size = None
Unused.__module__ = "lightllm.common.kv_cache_mem_manager.allocator"
Unused.__qualname__ = Unused.__name__ = "KvCacheAllocator"
pools = [BlockPool(12_000, 3_000), BlockPool(500, 3), LogicalAllocator(), KvCacheAllocator(80_000, 20_000), Unused()]
say({})
`;

/**
 * The indices are a device tensor in the servers, and in host memory here. Blocks that were freed but not
 * sorted yet are kept separately, in another tensor or in a list with its own count, depending on the version.
 */
const INDICES = `
import torch
def allocator(module, name, **books):
    one = type(name, (), {"__module__": "sglang.srt.mem_cache.allocator" + module})()
    one.__dict__.update(books)
    return one
def indices(count):
    return torch.arange(1, count + 1, dtype=torch.int64)
pools = [
    allocator("", "TokenToKVPoolAllocator", size=50_000, page_size=1,
        free_pages=indices(50_000)[45_000:], release_pages=indices(2_500)),
    allocator(".token", "TokenToKVPoolAllocator", size=40_000, page_size=1,
        free_pages=indices(40_000)[40_000:], release_pages=torch.empty((0,), dtype=torch.int64)),
    allocator("", "PagedTokenToKVPoolAllocator", size=64 * 3_000, num_pages=3_000, page_size=64,
        free_pages=indices(2_250), release_pages=None),
    allocator(".paged", "PagedTokenToKVPoolAllocator", size=64 * 2_000, num_pages=2_000, page_size=64,
        free_pages=indices(2_000)[1_600:], release_pages=None, staged_pages=[indices(60), indices(40)], num_staged_pages=100),
    allocator(".paged", "PagedTokenToKVPoolAllocator", size=64 * 1_000, num_pages=1_000, page_size=64, free_pages=None),
]
say({})
`;

async function poolsOf(python: { readonly path: string }, program: string) {
  const running = await startPython(python, program);
  const memory = openProcessMemory(running.pid);
  try {
    const expected = countObjects(memory).census.objects.reduce((sum, count) => sum + count, 0);
    const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, expected);
    return findKvPools(objects).sort((a, b) => b.blocks - a.blocks);
  } finally {
    memory.close();
    await running.stop();
  }
}

const withoutPath = (pools: Awaited<ReturnType<typeof poolsOf>>) =>
  pools.map(({ path: _, ...pool }) => pool);

const pythons = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

test.each(pythons)("occupancy of a server's pool, Python $version", async (python) => {
  const found = await poolsOf(python, NUMBERS);
  expect(withoutPath(found)).toEqual([
    {
      type: "lightllm.common.kv_cache_mem_manager.allocator.KvCacheAllocator",
      blocks: 80_000,
      freeBlocks: 20_000,
      occupancy: 0.75,
    },
    {
      type: "vllm.v1.core.block_pool.BlockPool",
      blocks: 12_000,
      freeBlocks: 3_000,
      occupancy: 0.75,
    },
    {
      type: "lmdeploy.pytorch.paging.block_manager.base_block_manager.LogicalAllocator",
      blocks: 1_000,
      freeBlocks: 250,
      occupancy: 0.75,
    },
    { type: "vllm.v1.core.block_pool.BlockPool", blocks: 500, freeBlocks: 3, occupancy: 0.994 },
  ]);
  expect(found[1]?.path).toEqual(["module __main__", "pools", "list[...]"]);
});

test.skipIf(environment.torchPython === null)(
  "a pool whose free blocks are a tensor of their indices",
  async () => {
    const found = await poolsOf({ path: present(environment.torchPython) }, INDICES);
    const name = "sglang.srt.mem_cache.allocator";
    expect(withoutPath(found)).toEqual([
      {
        type: `${name}.TokenToKVPoolAllocator`,
        blocks: 50_000,
        freeBlocks: 7_500,
        occupancy: 0.85,
      },
      {
        type: `${name}.token.TokenToKVPoolAllocator`,
        blocks: 40_000,
        freeBlocks: 0,
        occupancy: 1,
      },
      {
        type: `${name}.PagedTokenToKVPoolAllocator`,
        blocks: 3_000,
        freeBlocks: 2_250,
        occupancy: 0.25,
      },
      {
        type: `${name}.paged.PagedTokenToKVPoolAllocator`,
        blocks: 2_000,
        freeBlocks: 500,
        occupancy: 0.75,
      },
    ]);
  },
);
