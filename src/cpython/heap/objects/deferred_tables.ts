/**
 * Memory that belongs to an object and is elsewhere: tables of dicts, dimensions of arrays, storages of
 * tensors. It is noted while the heap is scanned, and read at the end in address order.
 */

import type { Memory } from "../../../linux/memory/memory.js";
import { float64At, itemAt, uint32At } from "../../../model/base/columns.js";
import { type GrowingColumn, growingFloat64 } from "../../../model/base/growing_column.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapLayout } from "../memory/layout.js";
import { wordAt } from "../memory/words.js";
import { parseKeys, readBytes, readKeys, readWords } from "./small_objects.js";
import { readStorageOf } from "./tensor.js";
import type { TypeRow } from "./type_table.js";

type Report = (row: TypeRow, bytes: Bytes) => void;

const PIECE = 32 * 1024;
/** With this many tables in a piece, reading the whole piece is cheaper than reading each table. */
const FEWEST_NEAR = 5;
const HEAD_BYTES = 40;
const NDARRAY_OWNS = 4;
const MOST_DIMENSIONS = 64;

export interface Storage {
  readonly row: TypeRow;
  readonly data: Address;
  readonly bytes: Bytes;
}

interface Ndarray {
  readonly row: TypeRow;
  readonly data: Address;
  readonly dimensionsAt: Address;
  readonly dimensions: number;
  readonly descriptor: Address;
  readonly owns: boolean;
}

export class DeferredTables {
  /** One column for each of `#dictRows`: a type's row * 2, + 1 for dicts with shared tables. */
  readonly #dicts: GrowingColumn<Float64Array>[] = [];
  readonly #dictRows: TypeRow[] = [];
  readonly #typeKeys: [row: TypeRow, at: Address][] = [];
  readonly #ndarrays: Ndarray[] = [];
  readonly #arrays: { row: TypeRow; allocated: number; descriptor: Address }[] = [];
  readonly #tensors: { row: TypeRow; address: Address }[] = [];
  readonly #itemSizes = new Map<Address, Bytes>();

  constructor(
    readonly memory: Memory,
    readonly layout: HeapLayout,
  ) {}

  addDict(row: TypeRow, keys: Address, split: boolean): void {
    if (keys === 0 || keys >= 2 ** 47) {
      return;
    }
    let index = this.#dictRows.indexOf(row * 2 + (split ? 1 : 0));
    if (index < 0) {
      index = this.#dictRows.push(row * 2 + (split ? 1 : 0)) - 1;
      this.#dicts.push(growingFloat64());
    }
    itemAt(this.#dicts, index).push(keys);
  }

  addTypeKeys(row: TypeRow, at: Address): void {
    this.#typeKeys.push([row, at]);
  }

  /** PyArrayObject: 16 data  24 nd i32  32 dimensions  40 strides  48 base  56 descr  64 flags i32. */
  addNdarray(row: TypeRow, words: Uint32Array, at: number): void {
    this.#ndarrays.push({
      row,
      data: wordAt(words, at + 4),
      dimensions: words[at + 6] ?? 0,
      dimensionsAt: wordAt(words, at + 8),
      descriptor: wordAt(words, at + 14),
      owns: ((words[at + 16] ?? 0) & NDARRAY_OWNS) !== 0,
    });
  }

  /** arrayobject of Modules/arraymodule.c: 24 ob_item  32 allocated  40 ob_descr (typecode, itemsize). */
  addArray(row: TypeRow, words: Uint32Array, at: number): void {
    this.#arrays.push({
      row,
      allocated: wordAt(words, at + 8),
      descriptor: wordAt(words, at + 10),
    });
  }

  addTensor(row: TypeRow, address: Address): void {
    this.#tensors.push({ row, address });
  }

  /**
   * Reports the additional memory of each type. `storages` reports those of tensors, which several tensors may
   * share.
   */
  resolve(report: Report): void {
    for (const [index, code] of this.#dictRows.entries()) {
      const column = itemAt(this.#dicts, index).view();
      this.#resolveDicts(column, code >>> 1, code % 2 === 1, report);
    }
    for (const [row, at] of this.#typeKeys) {
      const keys = readWords(this.memory, at, 1)?.[0] ?? 0;
      report(row, keys === 0 ? 0 : (readKeys(this.memory, this.layout, keys)?.bytes ?? 0));
    }
    for (const array of this.#ndarrays) {
      report(array.row, this.#ndarrayBytes(array));
    }
    for (const { row, allocated, descriptor } of this.#arrays) {
      report(row, allocated < 2 ** 40 ? allocated * this.#itemSize(descriptor) : 0);
    }
  }

  /** Every tensor's storage; one that tensors share is reported several times. */
  storages(): Storage[] {
    return this.#tensors.flatMap(({ row, address }) => {
      const storage = readStorageOf(this.memory, address);
      return storage === null ? [] : [{ row, data: storage.data, bytes: storage.bytes }];
    });
  }

  /** Data of arrays that own it; a tensor may also use it. */
  arrayData(): Float64Array {
    return Float64Array.from(this.#ndarrays.filter(({ owns }) => owns).map(({ data }) => data));
  }

  /** Dicts of one type: unshared tables count in full, shared ones only with their values. */
  #resolveDicts(tables: Float64Array, row: TypeRow, split: boolean, report: Report): void {
    tables.sort();
    const piece = new Uint8Array(PIECE);
    const words = new Uint32Array(piece.buffer);
    let start = 0;
    let held = 0;
    let sum = 0;
    let last = 0;
    let lastBytes = 0;
    for (let n = 0; n < tables.length; n++) {
      const address = float64At(tables, n);
      if (address === last) {
        sum += lastBytes;
        continue;
      }
      if (address < start || address + HEAD_BYTES > start + held) {
        start = address - (address % 8);
        // Sparse tables are read one by one: a whole piece for each would read the heap many times over.
        const near = (tables[n + FEWEST_NEAR] ?? Number.POSITIVE_INFINITY) - start < PIECE;
        const wanted = near ? PIECE : 64;
        held = this.memory.readInto(start, piece.subarray(0, wanted));
      }
      last = address;
      lastBytes = 0;
      if (address % 8 === 0 && address + HEAD_BYTES <= start + held) {
        const keys = parseKeys(this.layout, address, words, (address - start) >>> 2);
        if (keys !== null) {
          const values = split ? (keys.used + keys.usable) * 8 : 0;
          // Shared tables count for the type that keeps them.
          lastBytes = values + (keys.references === 1 ? keys.bytes : 0);
        }
      }
      sum += lastBytes;
    }
    report(row, sum);
  }

  #ndarrayBytes({ dimensions, dimensionsAt, descriptor, owns }: Ndarray): Bytes {
    if (dimensions > MOST_DIMENSIONS) {
      return 0;
    }
    if (!owns) {
      return dimensions * 16;
    }
    const lengths = dimensions === 0 ? [] : readWords(this.memory, dimensionsAt, dimensions);
    if (lengths === null) {
      return 0;
    }
    const items = Array.from(lengths).reduce((product, length) => product * length, 1);
    const bytes = items * this.#ndarrayItemSize(descriptor);
    return dimensions * 16 + (bytes < 2 ** 47 ? bytes : 0);
  }

  /** PyArray_Descr has elsize as an int at 32 until NumPy 1.26, and as a word at 40 from 2.0 on. */
  #ndarrayItemSize(descriptor: Address): Bytes {
    let size = this.#itemSizes.get(descriptor);
    if (size === undefined) {
      const bytes = readBytes(this.memory, descriptor + 32, 16);
      const halves = bytes === null ? new Uint32Array(4) : new Uint32Array(bytes.buffer);
      // Before 2.0, the alignment follows the int and is never 0; later, flags fill only the lower half.
      size = halves[1] !== 0 ? (halves[0] ?? 0) : (halves[2] ?? 0);
      this.#itemSizes.set(descriptor, size);
    }
    return size;
  }

  /** struct arraydescr: 0 typecode, a char  4 itemsize i32. */
  #itemSize(descriptor: Address): Bytes {
    let size = this.#itemSizes.get(descriptor);
    if (size === undefined) {
      const bytes = readBytes(this.memory, descriptor, 8);
      size = bytes === null ? 0 : uint32At(new Uint32Array(bytes.buffer), 1);
      this.#itemSizes.set(descriptor, size <= 16 ? size : 0);
    }
    return size <= 16 ? size : 0;
  }
}
