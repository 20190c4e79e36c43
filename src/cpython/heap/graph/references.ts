/**
 * The second pass finds the references of each object: exactly for the common containers, and for all other
 * objects from their words. A word is a reference if an object begins at the address that it holds. Borrowed
 * references (the target of a weak reference, an object's list of weak references) are left out.
 */

import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapPages } from "../memory/heap_pages.js";
import type { HeapLayout } from "../memory/layout.js";
import { blockBytes } from "../memory/memory_blocks.js";
import { PAGE } from "../memory/page_directory.js";
import { signedWordAt } from "../memory/words.js";
import { BufferReferences, type ReferenceSink } from "../objects/buffer_references.js";
import { FrameReferences } from "../objects/frame_references.js";
import { type KeysTable, noKeys, parseKeysInto, valuesPrefix } from "../objects/small_objects.js";
import {
  LEAF_BYTES,
  refersToNothing,
  SHAPE_ARRAY,
  SHAPE_BYTEARRAY,
  SHAPE_BYTES,
  SHAPE_C_DATA,
  SHAPE_DEQUE,
  SHAPE_DICT,
  SHAPE_FRAME,
  SHAPE_INT,
  SHAPE_LEAF,
  SHAPE_LIST,
  SHAPE_MODULE,
  SHAPE_NDARRAY,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_STR,
  SHAPE_TABLED,
  SHAPE_TENSOR,
  SHAPE_TUPLE,
  SHAPE_TYPE,
  SHAPE_WEAKREF,
  type TypeRow,
  type TypeTable,
} from "../objects/type_table.js";
import type { ObjectIndex } from "./node_index.js";

const DICT_BYTES = 48;
/** Offset of ob_bytes_object, if a bytearray's bytes are a separate object (Objects/bytearrayobject.c). */
const BYTEARRAY_BYTES = 56;
const LIST_BYTES = 40;
const SET_BYTES = 200;
const DEQUE_BLOCK_ITEMS = 64;
const MOST_DEQUE_BLOCKS = 1 << 22;
const MODULE_STATE = 32;
const MOST_STATE_BYTES = 16 * 1024;
/** PyTypeObject.tp_weaklist. */
const TYPE_WEAK_LIST = 368;
const MOST_WORDS = 2 ** 34;
/** The children of an element or the memo of a pickler: a structure, and the table that it points to. */
const TABLES_DEEP = 2;

export class References {
  readonly #buffers: BufferReferences;
  readonly #frames: FrameReferences;
  /** By type. */
  readonly #without: boolean[] = [];
  readonly #table = noKeys();
  #tableBytesLeft: Bytes;

  constructor(
    readonly copy: HeapPages,
    readonly layout: HeapLayout,
    readonly types: TypeTable,
    readonly index: ObjectIndex,
    readonly sink: ReferenceSink,
  ) {
    this.#tableBytesLeft = copy.bytes;
    this.#frames = new FrameReferences(copy, layout.python);
    this.#buffers = new BufferReferences(copy, sink, (start, bytes) => this.range(start, bytes));
  }

  /** Objects of the type never refer to anything. */
  isWithout(row: TypeRow): boolean {
    this.#without[row] ??= refersToNothing(this.types.of(row), this.layout);
    return this.#without[row];
  }

  /** Reports all references of one object. */
  visit(object: Address, row: TypeRow, room: Bytes): void {
    const { types } = this;
    this.#attributes(object, row);
    const { shape, basicSize: basic } = types.of(row);
    switch (shape) {
      case SHAPE_STR:
        // In a subclass, the fields follow the pointer to the characters, which ends a PyUnicodeObject.
        this.#rest(object, this.layout.compactBytes + 8, row);
        return;
      case SHAPE_INT:
      case SHAPE_BYTES:
        return;
      case SHAPE_BYTEARRAY:
        if (this.layout.byteArrayHoldsObject) {
          this.range(object + BYTEARRAY_BYTES, 8);
        }
        return;
      case SHAPE_ARRAY:
        this.#buffers.array(object);
        return;
      case SHAPE_LEAF:
        this.range(object + LEAF_BYTES, Math.min(basic, room) - LEAF_BYTES);
        return;
      case SHAPE_DICT:
      case SHAPE_ORDERED_DICT:
        this.#dict(object);
        this.#rest(object, DICT_BYTES, row);
        return;
      case SHAPE_LIST:
        this.#list(object);
        this.#rest(object, LIST_BYTES, row);
        return;
      case SHAPE_TUPLE: {
        const items = this.#count(object + 16);
        this.range(object + this.layout.tupleItems, Math.min(items * 8, room));
        return;
      }
      case SHAPE_SET:
        this.#set(object);
        this.#rest(object, SET_BYTES, row);
        return;
      case SHAPE_DEQUE:
        this.#deque(object);
        this.#rest(object, 64, row);
        return;
      case SHAPE_WEAKREF:
        this.range(object + 24, 8); // it owns only its callback
        return;
      case SHAPE_NDARRAY:
        this.#buffers.ndarray(object);
        this.#rest(object, 48, row);
        return;
      case SHAPE_TYPE:
        this.range(
          object + 8,
          Math.min(room, Math.max(basic, this.layout.heapTypeBytes)) - 8,
          object + TYPE_WEAK_LIST,
        );
        this.#sharedKeys(this.copy.word(object + this.layout.heapTypeCachedKeys));
        return;
      case SHAPE_MODULE:
        this.range(object + 8, basic - 8, this.#weakList(object, row));
        this.#state(this.copy.word(object + MODULE_STATE));
        return;
      case SHAPE_FRAME: {
        const isObject = types.name(row) === "frame";
        for (const { start, bytes } of this.#frames.ranges(object, isObject, room)) {
          this.range(start, bytes, this.#weakList(object, row));
        }
        return;
      }
      case SHAPE_TENSOR:
        this.#rest(object, 16, row);
        return;
      default:
        this.#fields(object, row, room);
    }
  }

  /** Every word of an object of unknown type. */
  #fields(object: Address, row: TypeRow, room: Bytes): void {
    const { shape, basicSize, itemSize } = this.types.of(row);
    if (shape === SHAPE_C_DATA) {
      this.#buffers.cData(object);
    }
    const items = itemSize === 0 ? 0 : Math.abs(this.#count(object + 16));
    const end = Math.min(room, basicSize + items * itemSize);
    this.range(object + 16, end - 16, this.#weakList(object, row));
    this.#type(object, row);
    if (shape === SHAPE_TABLED) {
      this.#tables(object + 16, end - 16, TABLES_DEEP);
    }
  }

  /** An instance keeps its class alive: only heap types are objects here. */
  #type(object: Address, row: TypeRow): void {
    if (this.types.of(row).isHeapType) {
      this.range(object + 8, 8);
    }
  }

  /** Every word of a range that is the address of an object, except the word at `skip`. */
  range(start: Address, bytes: Bytes, skip: Address = 0): void {
    const { copy, index, sink } = this;
    const { words } = copy;
    if (!(bytes > 0) || bytes > MOST_WORDS) {
      return;
    }
    let address = start;
    const end = start + bytes;
    while (address < end) {
      const at = copy.index(address);
      const pageEnd = Math.min(end, address - (address % 4096) + 4096);
      if (at >= 0) {
        const stop = at + ((pageEnd - address) >>> 2);
        for (let word = at; word + 1 < stop; word += 2) {
          const low = words[word] ?? 0;
          if ((low & 15) !== 0 || (low === 0 && words[word + 1] === 0)) {
            continue;
          }
          const to = index.find(low | 0, (words[word + 1] ?? 0) | 0);
          if (to !== 0 && address + (word - at) * 4 !== skip) {
            sink.edge(to);
          }
        }
      }
      address = pageEnd;
    }
  }

  /**
   * Follows blocks that the words of a range point to, recursively; their contents are references. Their total
   * size is bounded by the heap; larger claims are invalid.
   */
  #tables(start: Address, bytes: Bytes, deep: number): void {
    for (let address = start; address < start + bytes; address += 8) {
      const block = this.#word(address);
      const isObject = this.index.find(block | 0, Math.floor(block / 2 ** 32)) !== 0;
      const size = isObject ? 0 : blockBytes(this.copy, this.layout, block);
      if (size > 0 && size <= this.#tableBytesLeft) {
        this.#tableBytesLeft -= size;
        this.sink.owns(block, size);
        this.range(block, size);
        if (deep > 1) {
          this.#tables(block, size, deep - 1);
        }
      }
    }
  }

  /** Offset of an object's weak references, which refer to the object and not the reverse; 0 if there are none. */
  #weakList(object: Address, row: TypeRow): Address {
    const offset = this.types.of(row).weakOffset;
    return offset > 0 ? object + offset : 0;
  }

  #word(address: Address): Address {
    const word = this.copy.word(address);
    return word > 0 && word < 2 ** 48 ? word : 0;
  }

  #count(address: Address): number {
    const at = this.copy.index(address);
    return at < 0 ? 0 : signedWordAt(this.copy.words, at);
  }

  /** Fields that a subclass adds after its built-in base: slots and a dict. */
  #rest(object: Address, from: Bytes, row: TypeRow): void {
    const basic = this.types.of(row).basicSize;
    if (basic > from) {
      this.range(object + from, basic - from, this.#weakList(object, row));
    }
  }

  /**
   * Attributes outside the fields of the object.
   *   3.11          -32 values, -24 dict
   *   3.12          -32 weak list, -24 dict, or values - 1
   *   3.13 and on   -32 weak list, -24 dict; behind the object: capacity u8 size u8 embedded u8 valid u8, values
   */
  #attributes(object: Address, row: TypeRow): void {
    const { types, layout } = this;
    const offset = types.of(row).dictOffset;
    if (offset < 0) {
      // Counted from the end of a variable-size object, whose items are counted by ob_size.
      const items = Math.abs(this.#count(object + 16));
      const end = types.of(row).basicSize + items * types.of(row).itemSize;
      this.range(object + Math.ceil(end / 8) * 8 + offset, 8);
    }
    if (!types.of(row).managedDict) {
      return;
    }
    const place = this.#word(object - 24);
    if (layout.values === "pointer") {
      this.range(object - 24, 8);
      this.#values(this.#word(object - 32), row);
    } else if (layout.values === "tagged" && place % 2 === 1) {
      this.#values(place + 1, row);
    } else {
      this.range(object - 24, 8);
    }
    if (layout.values === "inline" && types.of(row).inlineValues > 0) {
      const at = object + types.of(row).basicSize;
      const index = this.copy.index(at);
      if (index >= 0 && (this.copy.words[index] ?? 0) >>> 24 === 1) {
        this.range(at + 8, ((this.copy.words[index] ?? 0) & 0xff) * 8);
      }
    }
  }

  #values(values: Address, row: TypeRow): void {
    const keys = this.#keys(
      this.#word(this.types.of(row).address + this.layout.heapTypeCachedKeys),
    );
    if (values !== 0 && keys !== null) {
      this.range(values, this.#ownsValues(values, keys));
    }
  }

  #ownsValues(values: Address, keys: KeysTable): Bytes {
    const at = this.copy.index(values - 8);
    const prefix = at < 0 ? 0 : valuesPrefix(this.layout, this.copy.words[at + 1] ?? 0);
    const bytes = (keys.used + keys.usable) * 8;
    this.sink.owns(values - prefix, bytes);
    return bytes;
  }

  /** Valid until the next call. */
  #keys(address: Address): KeysTable | null {
    const { copy, layout } = this;
    const at = address % 8 === 0 ? copy.index(address) : -1;
    return at >= 0 && parseKeysInto(this.#table, layout, address, copy.words, at)
      ? this.#table
      : null;
  }

  #dict(object: Address): void {
    const keys = this.#keys(this.#word(object + 32));
    if (keys === null) {
      return;
    }
    const values = this.#word(object + 40);
    if (values !== 0) {
      const count = Math.min(keys.used, keys.bytes / 8);
      this.#ownsValues(values, keys);
      this.range(values + this.layout.valuesStart, count * 8);
      return;
    }
    if (keys.references === 1) {
      this.sink.owns(keys.address, keys.bytes);
    }
    this.#entries(keys, keys.entryBytes === 24 ? 8 : 0);
  }

  /** Keys and values of a table: every word except the hash. */
  #entries(keys: KeysTable, first: Bytes): void {
    const { copy } = this;
    const step = keys.entryBytes;
    let address = keys.entriesAt + first;
    let at = -1;
    let leftInPage = 0;
    for (let n = 0; n < keys.used; n++) {
      if (leftInPage < 16) {
        at = copy.index(address);
        leftInPage = PAGE - (address % PAGE);
        if (at < 0) {
          return;
        }
      }
      this.#edge(at);
      // Adjacent pages may be apart in the copy.
      const second = leftInPage < 16 ? copy.index(address + 8) : at + 2;
      if (second < 0) {
        return;
      }
      this.#edge(second);
      address += step;
      at += step / 4;
      leftInPage -= step;
    }
  }

  /** The object whose address is at an index of the copy. */
  #edge(at: number): void {
    const { words } = this.copy;
    const to = this.index.find((words[at] ?? 0) | 0, words[at + 1] ?? 0);
    if (to !== 0) {
      this.sink.edge(to);
    }
  }

  /** The attribute names that the instances of a class share. */
  #sharedKeys(address: Address): void {
    const keys = this.#keys(address > 0 ? address : 0);
    if (keys !== null) {
      this.sink.owns(keys.address, keys.bytes);
      this.#entries(keys, keys.entryBytes === 24 ? 8 : 0);
    }
  }

  #list(object: Address): void {
    const items = this.#word(object + 24);
    const count = this.#count(object + 16);
    if (items !== 0 && count > 0) {
      this.sink.owns(items, 0); // its size is part of the list's size
      this.range(items, count * 8);
    }
  }

  #set(object: Address): void {
    const table = this.#word(object + 40);
    const slots = this.#count(object + 32) + 1;
    if (table === 0 || !(slots > 0 && slots < MOST_WORDS)) {
      return;
    }
    this.sink.owns(table, 0);
    for (let slot = 0; slot < slots; slot++) {
      const at = this.copy.index(table + slot * 16);
      if (at < 0) {
        return;
      }
      this.#edge(at);
    }
  }

  /** block: 0 left link  8 64 items  520 right link; the first block's items start at `leftindex`. */
  #deque(object: Address): void {
    let left = this.#count(object + 16);
    let block = this.#word(object + 24);
    let first = this.#count(object + 40);
    for (let n = 0; block !== 0 && left > 0 && n < MOST_DEQUE_BLOCKS; n++) {
      const here = Math.min(left, DEQUE_BLOCK_ITEMS - first);
      if (!(first >= 0 && first < DEQUE_BLOCK_ITEMS)) {
        return;
      }
      this.sink.owns(block, 0);
      this.range(block + 8 + first * 8, here * 8);
      left -= here;
      first = 0;
      block = this.#word(block + 8 + DEQUE_BLOCK_ITEMS * 8);
    }
  }

  /** A C module's own structure; its size is not stored anywhere, so the size of its chunk is used. */
  #state(address: Address): void {
    if (!(address > 0)) {
      return;
    }
    const size = this.#word(address - 8);
    if (size >= 32 && size < MOST_STATE_BYTES) {
      this.range(address, size - (size % 8) - 8);
    }
  }
}
