/**
 * Servers of language models take one pool for keys and values at their start and hand out its blocks: how
 * full it is says something, its size does not. The pools' books are plain attributes, read from outside.
 */
import { pathTo } from "../../model/heap_paths.js";
import { countAt } from "./attributes.js";
import type { ObjectGraph } from "./graph.js";
import { nodesOfType } from "./root_paths.js";
import { StepNames } from "./step_names.js";

export interface KvPool {
  readonly type: string;
  readonly path: readonly string[];
  readonly blocks: number;
  readonly freeBlocks: number;
  /** 0 to 1. */
  readonly occupancy: number;
}

/** Where each class keeps how many blocks there are, and how many are free. */
const POOLS: readonly { readonly type: string; readonly all: string; readonly free: string }[] = [
  // vllm/v1/core/block_pool.py, kv_cache_utils.py
  {
    type: "vllm.v1.core.block_pool.BlockPool",
    all: "num_gpu_blocks",
    free: "free_block_queue.num_free_blocks",
  },
];

export function findKvPools(objects: ObjectGraph): KvPool[] {
  const names = new StepNames(objects);
  return POOLS.flatMap(({ type, all, free }) =>
    nodesOfType(objects, type).flatMap((node) => {
      const blocks = countAt(objects, node, all);
      const freeBlocks = countAt(objects, node, free);
      return blocks === null || freeBlocks === null || blocks <= 0
        ? []
        : [
            {
              type,
              path: names.words(pathTo(objects.paths, node)),
              blocks,
              freeBlocks,
              occupancy: Math.min(1, Math.max(0, 1 - freeBlocks / blocks)),
            },
          ];
    }),
  );
}
