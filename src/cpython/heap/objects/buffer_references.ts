/** The data of arrays and ctypes objects, which is stored outside the object. */

import type { Address, Bytes } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { signedWordAt } from "../memory/words.js";
import { ownDataBytes, readWords } from "./small_objects.js";

/** Receives the references of each object. */
export interface ReferenceSink {
  edge(to: NodeId): void;
  /** A buffer that the object owns outside its own block; `bytes` if it counts for the object's size. */
  owns(buffer: Address, bytes: Bytes): void;
}

const NDARRAY_OWNS = 4;
const OBJECT_KIND = 79; // "O"
const MOST_WORDS = 2 ** 34;

export class BufferReferences {
  constructor(
    readonly copy: HeapPages,
    readonly sink: ReferenceSink,
    /** Reports every reference in a range. */
    readonly range: (start: Address, bytes: Bytes) => void,
  ) {}

  /** arrayobject: 24 items  32 allocated  40 descriptor, which has the item size, an i32, at 4. */
  array(object: Address): void {
    const items = wordOf(this.copy, object + 24);
    // Descriptors are constants of a library, which are not copied.
    const head = readWords(this.copy, wordOf(this.copy, object + 40), 1)?.[0] ?? 0;
    const itemBytes = Math.floor(head / 2 ** 32);
    const bytes = countOf(this.copy, object + 32) * itemBytes;
    if (items !== 0 && itemBytes <= 16 && bytes >= 0 && bytes < MOST_WORDS * 64) {
      this.sink.owns(items, bytes);
    }
  }

  cData(object: Address): void {
    const at = this.copy.index(object);
    const bytes = at < 0 ? 0 : ownDataBytes(this.copy.words, at);
    if (bytes > 0) {
      this.sink.owns(wordOf(this.copy, object + 16), bytes);
    }
  }

  /** PyArrayObject: 16 data  24 nd i32  32 dimensions  48 base  56 descr (its kind at 24)  64 flags i32. */
  ndarray(object: Address): void {
    const { copy } = this;
    const flags = copy.index(object + 64);
    const data = wordOf(this.copy, object + 16);
    if (flags < 0 || ((copy.words[flags] ?? 0) & NDARRAY_OWNS) === 0 || data === 0) {
      return;
    }
    const nd = copy.index(object + 24);
    const dimensions = wordOf(this.copy, object + 32);
    let items = 1;
    for (let n = 0; n < Math.min(copy.words[nd] ?? 0, 64); n++) {
      items *= Math.max(0, countOf(this.copy, dimensions + n * 8));
    }
    const bytes = items * this.#ndarrayItemSize(wordOf(this.copy, object + 56));
    this.sink.owns(data, (bytes < MOST_WORDS * 64 ? bytes : 0) + (copy.words[nd] ?? 0) * 16);
    const kind = copy.index(wordOf(this.copy, object + 56) + 24);
    if (kind >= 0 && ((copy.words[kind] ?? 0) & 0xff) === OBJECT_KIND) {
      this.range(data, Math.min(items * 8, MOST_WORDS));
    }
  }

  #ndarrayItemSize(descriptor: Address): Bytes {
    const at = this.copy.index(descriptor + 32);
    const { words } = this.copy;
    return at < 0 ? 0 : words[at + 1] !== 0 ? (words[at] ?? 0) : (words[at + 2] ?? 0);
  }
}

function wordOf(copy: HeapPages, address: Address): Address {
  const word = copy.word(address);
  return word > 0 && word < 2 ** 48 ? word : 0;
}

function countOf(copy: HeapPages, address: Address): number {
  const at = copy.index(address);
  return at < 0 ? 0 : signedWordAt(copy.words, at);
}
