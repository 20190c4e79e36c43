/**
 * A block with its own mapping from glibc's malloc, recognized by its header at the start of a page:
 *
 *    0  previous size   0
 *    8  size | 2        IS_MMAPPED; whole pages, since glibc 2.43 less 16 bytes
 *   16  data
 */
import type { Bytes } from "../../model/base/units.js";

const PAGE = 4096;
const IS_MAPPED = 2;
/** Bytes before the data. */
export const MAPPED_HEAD: Bytes = 16;
const MISSING = 16;

/** Whole pages of the block whose header starts with the u32 `words[index]`; 0 if it is not such a header. */
export function mappedChunkBytes(words: Uint32Array, index: number): Bytes {
  const low = words[index + 2] ?? 0;
  if (words[index] !== 0 || words[index + 1] !== 0 || (low & 7) !== IS_MAPPED) {
    return 0;
  }
  return mappedBlockBytes(low - IS_MAPPED + (words[index + 3] ?? 0) * 2 ** 32);
}

/** From a size without its flags; 0 if it is not the size of a mapped block. */
export function mappedBlockBytes(size: Bytes): Bytes {
  const bytes = size % PAGE === 0 ? size : size + MISSING;
  return bytes % PAGE === 0 && bytes < 2 ** 47 ? bytes : 0;
}
