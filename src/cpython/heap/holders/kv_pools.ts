/**
 * Servers of language models reserve one pool for keys and values at start-up and allocate blocks from it, so
 * its occupancy is informative, not its size. The pool's bookkeeping is in plain attributes, which are read
 * from outside.
 */

import type { NodeId } from "../../../model/heap/heap_graph.js";
import { pathTo } from "../../../model/heap/heap_paths.js";
import type { ObjectGraph } from "../graph/graph.js";
import { addressAt, countAt } from "../names/attributes.js";
import { nodesOfType } from "../names/root_paths.js";
import { StepNames } from "../names/step_names.js";
import { isTensor, rowLengthOf } from "./device_tensors.js";

export interface KvPool {
  readonly type: string;
  readonly path: readonly string[];
  readonly blocks: number;
  readonly freeBlocks: number;
  /** 0 to 1. */
  readonly occupancy: number;
}

interface PoolBooks {
  readonly type: string;
  /** Attribute with the number of blocks. */
  readonly all: string;
  /** Attributes of the free blocks, which are added up: a number, or the row of their indices, a tensor. */
  readonly free: string;
  /** The same for blocks that were freed but not yet added to those; a version may lack them. */
  readonly freed?: readonly string[];
}

const SGLANG_FREED = ["release_pages", "num_staged_pages"];

/** Where each class keeps the number of blocks and of free blocks. */
const POOLS: readonly PoolBooks[] = [
  // vllm/v1/core/block_pool.py, kv_cache_utils.py
  {
    type: "vllm.v1.core.block_pool.BlockPool",
    all: "num_gpu_blocks",
    free: "free_block_queue.num_free_blocks",
  },
  // sglang: python/sglang/srt/mem_cache/allocator.py, later allocator/token.py and paged.py. A block is a token
  // or a page of tokens.
  ...["", ".token"].map((module) => ({
    type: `sglang.srt.mem_cache.allocator${module}.TokenToKVPoolAllocator`,
    all: "size",
    free: "free_pages",
    freed: SGLANG_FREED,
  })),
  ...["", ".paged"].map((module) => ({
    type: `sglang.srt.mem_cache.allocator${module}.PagedTokenToKVPoolAllocator`,
    all: "num_pages",
    free: "free_pages",
    freed: SGLANG_FREED,
  })),
  // lmdeploy/pytorch/paging/block_manager/base_block_manager.py
  {
    type: "lmdeploy.pytorch.paging.block_manager.base_block_manager.LogicalAllocator",
    all: "_gpu_allocator._num_blocks",
    free: "_gpu_allocator._free_count",
  },
  // lightllm/common/kv_cache_mem_manager/mem_manager.py, later partly in allocator.py. A block is a token.
  ...["mem_manager.MemoryManager", "allocator.KvCacheAllocator"].map((name) => ({
    type: `lightllm.common.kv_cache_mem_manager.${name}`,
    all: "size",
    free: "can_use_mem_size",
  })),
];

export function findKvPools(objects: ObjectGraph): KvPool[] {
  const names = new StepNames(objects);
  return POOLS.flatMap((books) =>
    nodesOfType(objects, books.type).flatMap((node) => {
      const blocks = countAt(objects, node, books.all);
      const freeBlocks = freeOf(objects, node, books);
      return blocks === null || freeBlocks === null || blocks <= 0
        ? []
        : [
            {
              type: books.type,
              path: names.words(pathTo(objects.paths, node)),
              blocks,
              freeBlocks,
              occupancy: Math.min(1, Math.max(0, 1 - freeBlocks / blocks)),
            },
          ];
    }),
  );
}

function freeOf(objects: ObjectGraph, node: NodeId, { free, freed = [] }: PoolBooks) {
  const ready = lengthAt(objects, node, free);
  return ready === null
    ? null
    : freed.reduce((sum, way) => sum + (lengthAt(objects, node, way) ?? 0), ready);
}

/** A number, or the number of indices in a tensor. */
function lengthAt(objects: ObjectGraph, node: NodeId, way: string): number | null {
  const address = addressAt(objects, node, way);
  const found = address === null ? 0 : objects.index.at(address);
  return found === 0 || !isTensor(objects, found)
    ? countAt(objects, node, way)
    : rowLengthOf(objects, found);
}
