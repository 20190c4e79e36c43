/**
 * Finds the object that owns native memory, however deep in C or C++ structures. It follows the words of each
 * object whose type may own native memory, block by block, and visits each block once.
 *
 *     SSLContext ──> SSL_CTX ──> X509_STORE ──> stack ──> X509 ──> ... ──> wanted
 *     object         blocks of malloc's, each pointed at by a word of the one before
 *
 * A word is followed if an allocator header shows that a block begins there, or if it points into the middle of
 * a block as in Rust's hash maps (hashbrown's RawTableInner, from 0.1 on; a set or map of std's is one):
 *
 *     control ─────────────────────────────┐        mask, next to that word: buckets - 1, a power of two minus 1
 *     block   [bucket]...[bucket] padding   [a byte per bucket] [16]
 *
 * SQLite and others put a word of their own before each block, and keep pointers to a header inside a block. So a word
 * may also point 8 bytes into a block, or anywhere into a wanted one.
 *
 * Among several objects, the one with the fewest blocks in between is the owner. Memory reachable only from a
 * module's state or a library's variables has no owner.
 */

import { bytesInPlace, FIRST_OBJECT, type ObjectGraph } from "../cpython/heap/index.js";
import { HashedAddresses } from "../cpython/heap/memory/hashed_addresses.js";
import { blockBytes } from "../cpython/heap/memory/memory_blocks.js";
import { lastAtMost } from "../cpython/heap/objects/owned_buffers.js";
import {
  SHAPE_BYTEARRAY,
  SHAPE_BYTES,
  SHAPE_DICT,
  SHAPE_INT,
  SHAPE_LEAF,
  SHAPE_LIST,
  SHAPE_MODULE,
  SHAPE_SET,
  SHAPE_STR,
  SHAPE_TUPLE,
  SHAPE_TYPE,
} from "../cpython/heap/objects/type_table.js";
import { threadCpu } from "../linux/this_process/clock.js";
import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import type { Address, Bytes, Millis } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";

/** Maximum size of all blocks together; deeper blocks are not followed. */
const MOST_BYTES: Bytes = 2 ** 29;
const MOST_BLOCKS = 2 ** 22;
/** Largest block: structures are not larger, and data is not searched. */
const LARGEST_STRUCTURE: Bytes = 2 ** 20;
/** CPU time. A few hundred TLS contexts have millions of blocks; by then, the search has found enough of the wanted ones. */
const MOST_MS: Millis = 2_500;
const BLOCKS_PER_CHECK = 2 ** 12;
const HEAD: Bytes = 16;
const WORD: Bytes = 8;
/** Largest hashbrown bucket: a key and a value in place. */
const LARGEST_BUCKET: Bytes = 512;
const BUCKET_STEP: Bytes = 4;
const FEWEST_BUCKETS = 4;
const MOST_BUCKETS = 2 ** 32;
/** Control bytes are read 16 at a time, beyond the last bucket. */
const CONTROL_GROUP: Bytes = 16;
/** The rounding of an allocator; large requests are rounded to whole pages. */
const MOST_ROUNDING: Bytes = 32;
const MOST_OF_PAGES: Bytes = 4096 + MOST_ROUNDING;
const LEAST_IN_PAGES: Bytes = 2 ** 16;
/** Types whose native memory is fully known or is not owned by a single object. */
const KNOWN: ReadonlySet<number> = new Set([
  SHAPE_INT,
  SHAPE_LIST,
  SHAPE_TUPLE,
  SHAPE_BYTES,
  SHAPE_STR,
  SHAPE_DICT,
  SHAPE_SET,
  SHAPE_BYTEARRAY,
  SHAPE_LEAF,
  SHAPE_MODULE,
  SHAPE_TYPE,
]);

/** In place of an owner: the search ended before it came to the address, so nothing is known about it. */
export const UNSEARCHED = -1;

/**
 * For each address, the object that leads through C structures to the block or object there; 0 if there is none, and
 * {@link UNSEARCHED}.
 */
export function structureOwners(
  objects: ObjectGraph,
  addresses: readonly Address[],
  mostMs: Millis = MOST_MS,
): readonly NodeId[] {
  const { graph, types, end } = objects;
  const structures = new Structures(objects, new Set(addresses));
  for (let node = FIRST_OBJECT; node < end; node++) {
    if (!KNOWN.has(types.of(uint32At(graph.type, node)).shape)) {
      structures.followObject(node);
    }
  }
  structures.run(mostMs);
  return addresses.map((address) => structures.ownerOf(address));
}

class Structures {
  /** Blocks in the order in which they were found. */
  readonly #met = new HashedAddresses();
  readonly #owners: NodeId[] = [];
  readonly #sizes: Bytes[] = [];
  #bytesLeft = MOST_BYTES;
  #wantedLeft: number;
  /** Whether the search ended before it came to all that objects lead to. */
  #isOpen = false;
  /** Of wanted blocks, ascending. */
  readonly wantedStarts: readonly Address[];
  readonly wantedEnds: readonly Address[];

  /** Once all of `wanted` are found, the search stops. */
  constructor(
    readonly objects: ObjectGraph,
    readonly wanted: ReadonlySet<Address>,
  ) {
    this.#wantedLeft = wanted.size;
    const { copy, layout } = objects;
    this.wantedStarts = [...wanted].sort((a, b) => a - b);
    this.wantedEnds = this.wantedStarts.map((start) => start + blockBytes(copy, layout, start));
  }

  followObject(node: NodeId): void {
    const start = float64At(this.objects.graph.address, node) + HEAD;
    this.#follow(start, bytesInPlace(this.objects, node) - HEAD, node);
  }

  /** Goes from block to block until everything wanted is found or no block is left. */
  run(mostMs: Millis): void {
    const cpu = threadCpu();
    const mayGoOn = (n: number) =>
      this.#bytesLeft > 0 &&
      this.#met.size < MOST_BLOCKS &&
      (n % BLOCKS_PER_CHECK !== 0 || cpu() <= mostMs);
    for (let n = 0; n < this.#met.size && this.#wantedLeft > 0; n++) {
      if (!mayGoOn(n)) {
        // Where it has found none by then, most likely no object leads to them: memory of C code.
        this.#isOpen = this.#wantedLeft < this.wanted.size;
        return;
      }
      const size = itemAt(this.#sizes, n);
      if (size <= LARGEST_STRUCTURE) {
        this.#bytesLeft -= size;
        this.#follow(this.#met.at(n), size, itemAt(this.#owners, n));
      }
    }
  }

  ownerOf(address: Address): NodeId {
    return this.#owners[this.#met.find(address)] ?? (this.#isOpen ? UNSEARCHED : 0);
  }

  /** Visits the blocks that words of a range point to. */
  #follow(start: Address, bytes: Bytes, owner: NodeId): void {
    const { copy } = this.objects;
    for (let place = start; place + WORD <= start + bytes; place += WORD) {
      const word = copy.word(place);
      if (word <= 0 || word % WORD !== 0) {
        continue;
      }
      const around = this.#wantedAround(word);
      if (around > 0) {
        this.#addBlock(around, owner);
      } else if (word % 16 === WORD) {
        this.#addBlock(word - WORD, owner);
      } else {
        // Tables first: the last bucket, just before the control bytes, can look like the head of a block.
        this.#addBlock(this.#tableAround(word, place) || word, owner);
      }
    }
  }

  /** The wanted block that an address is in, but does not begin; 0 if there is none. */
  #wantedAround(address: Address): Address {
    const { wantedEnds, wantedStarts } = this;
    const at = lastAtMost(wantedStarts.length, (n) => itemAt(wantedStarts, n), address);
    const start = wantedStarts[at] ?? address;
    return address > start && address < (wantedEnds[at] ?? 0) ? start : 0;
  }

  /** Does nothing if no block begins there or it was already visited. */
  #addBlock(block: Address, owner: NodeId): void {
    const { copy, layout, index } = this.objects;
    if (this.#met.find(block) >= 0) {
      return;
    }
    const isWanted = this.wanted.has(block);
    const isObject = index.at(block) !== 0;
    const size = isObject ? 0 : blockBytes(copy, layout, block);
    if (size > 0 || (isObject && isWanted)) {
      this.#met.add(block);
      this.#owners.push(owner);
      this.#sizes.push(size); // references of objects are already known
      this.#wantedLeft -= isWanted ? 1 : 0;
    }
  }

  /** The block of the hash map whose control bytes begin at `control`, a word stored at `place`; 0 if there is none. */
  #tableAround(control: Address, place: Address): Address {
    const { copy, layout } = this.objects;
    for (const beside of [place + WORD, place - WORD]) {
      const buckets = copy.word(beside) + 1;
      // The logarithm of a power of two is an exact integer.
      if (
        !(
          buckets >= FEWEST_BUCKETS &&
          buckets <= MOST_BUCKETS &&
          Number.isInteger(Math.log2(buckets))
        )
      ) {
        continue;
      }
      for (let bucket = BUCKET_STEP; bucket <= LARGEST_BUCKET; bucket += BUCKET_STEP) {
        const before = Math.ceil((buckets * bucket) / 16) * 16;
        const needed = before + buckets + CONTROL_GROUP;
        const rounding = needed < LEAST_IN_PAGES ? MOST_ROUNDING : MOST_OF_PAGES;
        const bytes = blockBytes(copy, layout, control - before);
        if (bytes >= needed && bytes <= needed + rounding) {
          return control - before;
        }
      }
    }
    return 0;
  }
}
