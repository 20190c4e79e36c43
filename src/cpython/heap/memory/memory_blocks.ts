/**
 * Finds the size of the memory block at a pointer, from the data that its allocator keeps next to it:
 *
 *   pymalloc  the pool around it: 36 size class  44 offset of its last block
 *   glibc     -8 size of the chunk, plus 1 if the previous one is in use, 2 if it is a separate mapping
 */

import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapPages } from "./heap_pages.js";
import type { HeapLayout } from "./layout.js";

const POOL_HEADER = 48;
const SIZE_CLASSES = 32;
const LEAST_CHUNK = 32;
const LARGEST_CHUNK = 2 ** 40;
/** In the lowest bits of a chunk's size. */
const FLAGS = 8;

/**
 * Bytes from the address to the end of the block; 0 if, as far as can be determined, none begins there. A block
 * of a pool may be free, and a torn header may be wrong.
 */
export function blockBytes(copy: HeapPages, layout: HeapLayout, block: Address): Bytes {
  return block > 0 && block % 16 === 0
    ? pooledBytes(copy, layout, block) || chunkBytes(copy, block)
    : 0;
}

function pooledBytes(copy: HeapPages, { poolBytes }: HeapLayout, block: Address): Bytes {
  const within = block % poolBytes;
  const pool = copy.index(block - within);
  const sizeClass = pool < 0 ? SIZE_CLASSES : (copy.words[pool + 9] ?? 0);
  const bytes = (sizeClass + 1) * 16;
  const isPool = sizeClass < SIZE_CLASSES && copy.words[pool + 11] === poolBytes - bytes;
  return isPool && within >= POOL_HEADER && (within - POOL_HEADER) % bytes === 0 ? bytes : 0;
}

function chunkBytes(copy: HeapPages, block: Address): Bytes {
  const size = copy.word(block - 8);
  const flags = size % FLAGS;
  const bytes = size - flags;
  if (!(bytes >= LEAST_CHUNK && bytes < LARGEST_CHUNK) || bytes % 16 !== 0) {
    return 0;
  }
  if ((flags & 2) !== 0) {
    return block % 4096 === 16 ? bytes - 16 : 0;
  }
  const next = copy.index(block - 8 + bytes);
  return next >= 0 && ((copy.words[next] ?? 0) & 1) === 1 ? bytes - 8 : 0;
}
