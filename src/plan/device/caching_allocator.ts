/**
 * PyTorch's caching allocator, as far as it decides how much memory a process reserves
 * (c10/cuda/CUDACachingAllocator.cpp): blocks of whole 512 B; requests up to 1 MiB from segments of 2 MiB, requests below
 * 10 MiB from segments of 20 MiB, larger ones from a segment of their own, rounded up to 2 MiB. The smallest free block
 * that fits is taken, split if enough remains, and joined with its free neighbours when it is freed. Each stream has free
 * blocks of its own.
 */
import type { Bytes } from "../../model/base/units.js";

const MIB = 2 ** 20;
const ROUND = 512;
const SMALL_REQUEST = MIB;
const SMALL_SEGMENT = 2 * MIB;
const LARGE_SEGMENT = 20 * MIB;
const OWN_SEGMENT_FROM = 10 * MIB;
const SEGMENT_ROUND = 2 * MIB;

interface Pools {
  readonly small: Block[];
  readonly large: Block[];
}

interface Segment {
  readonly bytes: Bytes;
  /** The free blocks among which its own are. */
  readonly pool: Block[];
}

interface Block {
  bytes: Bytes;
  readonly order: number;
  readonly segment: Segment;
  before: Block | null;
  after: Block | null;
  free: boolean;
}

export class CachingAllocator {
  #allocated = 0;
  #reserved = 0;
  #blocks = 0;
  readonly #streams = new Map<number, Pools>();
  peakAllocated = 0;
  peakReserved = 0;
  /** Whether the limit was reached, so that free segments were returned. */
  reachedLimit = false;

  /** @param limit bytes that the device has for this process: free segments are returned before it is exceeded */
  constructor(readonly limit: Bytes) {}

  allocate(request: Bytes, stream = 0): Block {
    const bytes = Math.max(ROUND, Math.ceil(request / ROUND) * ROUND);
    const isSmall = bytes <= SMALL_REQUEST;
    const pools = this.#poolsOf(stream);
    const pool = isSmall ? pools.small : pools.large;
    const at = firstOf(pool, bytes, -1);
    const found = pool[at];
    const block = found ?? this.#newSegment(bytes, pool);
    if (found !== undefined) {
      pool.splice(at, 1);
      found.free = false;
    }
    const rest = block.bytes - bytes;
    if (isSmall ? rest >= ROUND : rest > SMALL_REQUEST) {
      this.#split(block, bytes, pool);
    }
    this.#allocated += block.bytes;
    this.peakAllocated = Math.max(this.peakAllocated, this.#allocated);
    return block;
  }

  free(block: Block): void {
    this.#allocated -= block.bytes;
    const { pool } = block.segment;
    let whole = block;
    const { before, after } = block;
    if (after?.free === true) {
      remove(pool, after);
      whole.bytes += after.bytes;
      this.#link(whole, after.after);
    }
    if (before?.free === true) {
      remove(pool, before);
      before.bytes += whole.bytes;
      this.#link(before, whole.after);
      whole = before;
    }
    whole.free = true;
    pool.splice(firstOf(pool, whole.bytes, whole.order), 0, whole);
  }

  #poolsOf(stream: number): Pools {
    const known = this.#streams.get(stream);
    const pools = known ?? { small: [], large: [] };
    if (known === undefined) {
      this.#streams.set(stream, pools);
    }
    return pools;
  }

  #newSegment(bytes: Bytes, pool: Block[]): Block {
    const size =
      bytes <= SMALL_REQUEST
        ? SMALL_SEGMENT
        : bytes < OWN_SEGMENT_FROM
          ? LARGE_SEGMENT
          : Math.ceil(bytes / SEGMENT_ROUND) * SEGMENT_ROUND;
    if (this.#reserved + size > this.limit) {
      this.#returnFreeSegments();
    }
    this.#reserved += size;
    this.peakReserved = Math.max(this.peakReserved, this.#reserved);
    return this.#block(size, { bytes: size, pool });
  }

  #block(bytes: Bytes, segment: Segment): Block {
    this.#blocks += 1;
    return { bytes, order: this.#blocks, segment, before: null, after: null, free: false };
  }

  #split(block: Block, bytes: Bytes, pool: Block[]): void {
    const rest = this.#block(block.bytes - bytes, block.segment);
    block.bytes = bytes;
    this.#link(rest, block.after);
    this.#link(block, rest);
    rest.free = true;
    pool.splice(firstOf(pool, rest.bytes, rest.order), 0, rest);
  }

  #link(before: Block, after: Block | null): void {
    before.after = after;
    if (after !== null) {
      after.before = before;
    }
  }

  #returnFreeSegments(): void {
    this.reachedLimit = true;
    for (const pool of [...this.#streams.values()].flatMap(({ small, large }) => [small, large])) {
      for (const block of pool.filter((each) => each.bytes === each.segment.bytes)) {
        remove(pool, block);
        this.#reserved -= block.bytes;
      }
    }
  }
}

/** Index of the first block that is not before (`bytes`, `order`): the pool is sorted by both. */
function firstOf(pool: readonly Block[], bytes: Bytes, order: number): number {
  let low = 0;
  let high = pool.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const each = pool[middle] as Block;
    if (each.bytes < bytes || (each.bytes === bytes && each.order < order)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function remove(pool: Block[], block: Block): void {
  pool.splice(firstOf(pool, block.bytes, block.order), 1);
}
