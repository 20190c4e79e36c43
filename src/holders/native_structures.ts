/**
 * The object that native memory hangs on, however deep in what C or C++ built: from the words of each object whose
 * type may keep what only C knows, block by block, each block once.
 *
 *     SSLContext ──> SSL_CTX ──> X509_STORE ──> stack ──> X509 ──> ... ──> wanted
 *     object         blocks of malloc's, each pointed at by a word of the one before
 *
 * A word is followed where an allocator's head says that a block begins there, or where it leads into the middle of one
 * as Rust's hash maps do (hashbrown's RawTableInner, from 0.1 on; a set or map of std's is one):
 *
 *     control ─────────────────────────────┐        mask, beside that word: buckets - 1, a power of two less 1
 *     block   [bucket]...[bucket] padding   [a byte a bucket] [16]
 *
 * Of several objects the one that fewest blocks lie between has it. What only a module's state or a library's variables
 * lead to has no object.
 */

import { bytesInPlace, FIRST_OBJECT, type ObjectGraph } from "../cpython/heap/index.js";
import { HashedAddresses } from "../cpython/heap/memory/hashed_addresses.js";
import { blockBytes } from "../cpython/heap/memory/memory_blocks.js";
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
import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import type { Address, Bytes } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";

/** Of all blocks together; beyond it is left what lies deepest. */
const MOST_BYTES: Bytes = 2 ** 29;
const MOST_BLOCKS = 2 ** 22;
/** Of one block: no structure is larger, and data is not looked through. */
const LARGEST_STRUCTURE: Bytes = 2 ** 20;
const HEAD: Bytes = 16;
const WORD: Bytes = 8;
/** hashbrown's, of a bucket: a key and a value in place. */
const LARGEST_BUCKET: Bytes = 512;
const BUCKET_STEP: Bytes = 4;
const FEWEST_BUCKETS = 4;
const MOST_BUCKETS = 2 ** 32;
/** Control bytes are read 16 at a time, past the last bucket's. */
const CONTROL_GROUP: Bytes = 16;
/** What an allocator rounds a request up by; a large one to whole pages. */
const MOST_ROUNDING: Bytes = 32;
const MOST_OF_PAGES: Bytes = 4096 + MOST_ROUNDING;
const LEAST_IN_PAGES: Bytes = 2 ** 16;
/** All that their objects keep is known, or is no object's alone. */
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

/** For each address the object that leads to the block that begins there, or to the object there, by a structure of C's;
 * 0 where there is none. */
export function structureOwners(
  objects: ObjectGraph,
  addresses: readonly Address[],
): readonly NodeId[] {
  const { graph, types, end } = objects;
  const structures = new Structures(objects, new Set(addresses));
  for (let node = FIRST_OBJECT; node < end; node++) {
    if (!KNOWN.has(types.of(uint32At(graph.type, node)).shape)) {
      structures.followObject(node);
    }
  }
  structures.run();
  return addresses.map((address) => structures.ownerOf(address));
}

class Structures {
  /** Blocks in the order in which they were met. */
  readonly #met = new HashedAddresses();
  readonly #owners: NodeId[] = [];
  readonly #sizes: Bytes[] = [];
  #bytesLeft = MOST_BYTES;
  #wantedLeft: number;

  /** Once all of `wanted` were met nothing more is. */
  constructor(
    readonly objects: ObjectGraph,
    readonly wanted: ReadonlySet<Address>,
  ) {
    this.#wantedLeft = wanted.size;
  }

  followObject(node: NodeId): void {
    const start = float64At(this.objects.graph.address, node) + HEAD;
    this.#follow(start, bytesInPlace(this.objects, node) - HEAD, node);
  }

  /** From block to block, until what is wanted was met, or nothing is left. */
  run(): void {
    const goesOn = () =>
      this.#wantedLeft > 0 && this.#bytesLeft > 0 && this.#met.size < MOST_BLOCKS;
    for (let n = 0; n < this.#met.size && goesOn(); n++) {
      const size = itemAt(this.#sizes, n);
      if (size <= LARGEST_STRUCTURE) {
        this.#bytesLeft -= size;
        this.#follow(this.#met.at(n), size, itemAt(this.#owners, n));
      }
    }
  }

  ownerOf(address: Address): NodeId {
    return this.#owners[this.#met.find(address)] ?? 0;
  }

  /** Meets the blocks that words of a range lead to. */
  #follow(start: Address, bytes: Bytes, owner: NodeId): void {
    const { copy } = this.objects;
    for (let place = start; place + WORD <= start + bytes; place += WORD) {
      const word = copy.word(place);
      if (word > 0 && word % 16 === 0) {
        // Tables first: the last bucket, just before the control bytes, can look like the head of a block.
        this.#meet(this.#tableAround(word, place) || word, owner);
      }
    }
  }

  /** Does nothing where no block begins there, or it was met before. */
  #meet(block: Address, owner: NodeId): void {
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
      this.#sizes.push(size); // what an object refers to is known
      this.#wantedLeft -= isWanted ? 1 : 0;
    }
  }

  /** The block of the hash map whose control bytes begin at `control`, a word that lies at `place`; 0 where none is. */
  #tableAround(control: Address, place: Address): Address {
    const { copy, layout } = this.objects;
    for (const beside of [place + WORD, place - WORD]) {
      const buckets = copy.word(beside) + 1;
      // Of a power of two the logarithm is whole, and exact.
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
