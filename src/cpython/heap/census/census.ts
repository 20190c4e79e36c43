/**
 * The census: how many objects of each type there are, and how many bytes they take, from one scan of the
 * heap (heap_scan.ts). Tables outside their objects are looked up at the end in address order, so that memory
 * is read sequentially and in large pieces.
 */

import type { Memory } from "../../../linux/memory/memory.js";
import { addAt, itemAt } from "../../../model/base/columns.js";
import { present } from "../../../model/base/present.js";
import type { Bytes } from "../../../model/base/units.js";
import { HashedAddresses } from "../memory/hashed_addresses.js";
import { type HeapPart, wholeRegions } from "../memory/heap_parts.js";
import type { HeapLayout } from "../memory/layout.js";
import { DeferredTables, type Storage } from "../objects/deferred_tables.js";
import {
  addressOf,
  type FoundObjects,
  HeapScan,
  type HeapVisitor,
  type ScanFigures,
} from "../objects/heap_scan.js";
import { fixedBytes, intBytes, ownBytes, strBytes } from "../objects/object_size.js";
import { ownDataBytes, ownTableBytes } from "../objects/small_objects.js";
import {
  SHAPE_ARRAY,
  SHAPE_C_DATA,
  SHAPE_DICT,
  SHAPE_INT,
  SHAPE_NDARRAY,
  SHAPE_ORDERED_DICT,
  SHAPE_STR,
  SHAPE_TENSOR,
  SHAPE_TYPE,
  type TypeRow,
  TypeTable,
} from "../objects/type_table.js";

/** Objects by type, as columns; a row is a type of which there is at least one. */
export interface Census {
  readonly typeNames: readonly string[];
  /** Module of the type: "builtins" for built-in types. */
  readonly modules: readonly string[];
  readonly objects: Float64Array;
  /** "builtins" for built-in types. */
  readonly bytes: Float64Array;
  /** In addition to `bytes`: memory that the objects own but getsizeof does not count (tensors' storages). */
  readonly bufferBytes: Float64Array;
  /** Objects that the garbage collector tracks now. */
  readonly tracked: Float64Array;
  readonly figures: ScanFigures;
}

/** The counts of one thread. Rows in the order in which types were found; some names occur several times. */
export interface CensusShare extends Census {
  /** Storages of tensors, which several tensors may share: row in this share, address of the data, bytes. */
  readonly storages: readonly Storage[];
  /** Addresses of arrays' data, which a tensor may also use. */
  readonly arrayData: Float64Array;
}

/** Counts every object of a program. Never pauses it; exact if it is paused. */
export function takeCensus(memory: Memory, layout: HeapLayout): Census {
  return joinShares([countShare(memory, layout, wholeRegions(memory))]);
}

/** Counts the objects in parts of a heap. */
export function countShare(
  memory: Memory,
  layout: HeapLayout,
  parts: Iterable<HeapPart>,
): CensusShare {
  const types = new TypeTable(memory, layout);
  const counter = new CensusCounter(memory, layout, types);
  const figures = new HeapScan(memory, layout, types, counter).run(parts);
  return counter.share(figures);
}

/** The census from all shares, largest type first. Counts each storage once. */
export function joinShares(shares: readonly CensusShare[]): Census {
  const rows = new Map<string, CensusRow>();
  const seen = new HashedAddresses();
  if (shares.some(({ storages }) => storages.length > 0)) {
    for (const { arrayData } of shares) {
      arrayData.forEach((data) => {
        seen.add(data);
      });
    }
  }
  for (const share of shares) {
    // Several types may have the same name (a redefined class); they are one row of the census.
    const of = share.typeNames.map((name, n) => {
      const row = rows.get(name) ?? new CensusRow(name, itemAt(share.modules, n));
      rows.set(name, row);
      row.add(
        share.objects[n] ?? 0,
        share.bytes[n] ?? 0,
        share.bufferBytes[n] ?? 0,
        share.tracked[n] ?? 0,
      );
      return row;
    });
    for (const { row, data, bytes } of share.storages) {
      if (seen.find(data) < 0) {
        seen.add(data);
        of[row]?.add(0, 0, bytes, 0);
      }
    }
  }
  const sorted = [...rows.values()].sort((a, b) => b.allBytes - a.allBytes);
  const column = (of: (row: CensusRow) => number) => Float64Array.from(sorted, of);
  return {
    typeNames: sorted.map(({ name }) => name),
    modules: sorted.map(({ module }) => module),
    objects: column(({ objects }) => objects),
    bytes: column(({ bytes }) => bytes),
    bufferBytes: column(({ bufferBytes }) => bufferBytes),
    tracked: column(({ tracked }) => tracked),
    figures: joinFigures(shares.map(({ figures }) => figures)),
  };
}

function joinFigures(all: readonly ScanFigures[]): ScanFigures {
  const sum = (of: (figures: ScanFigures) => number) =>
    all.reduce((total, figures) => total + of(figures), 0);
  return {
    readBytes: sum(({ readBytes }) => readBytes),
    pools: sum(({ pools }) => pools),
    usedBlocks: sum(({ usedBlocks }) => usedBlocks),
    tornPools: sum(({ tornPools }) => tornPools),
    debugHooks: all.some(({ debugHooks }) => debugHooks),
  };
}

class CensusRow {
  objects = 0;
  bytes = 0;
  bufferBytes = 0;
  tracked = 0;

  constructor(
    readonly name: string,
    readonly module: string,
  ) {}

  get allBytes(): Bytes {
    return this.bytes + this.bufferBytes;
  }

  add(objects: number, bytes: Bytes, bufferBytes: Bytes, tracked: number): void {
    this.objects += objects;
    this.bytes += bytes;
    this.bufferBytes += bufferBytes;
    this.tracked += tracked;
  }
}

/** How to count an object of a type, as bits; 0: not determined yet. */
const JUDGED = 1;
/** It may or may not be tracked by the garbage collector. */
const SEE_TRACKED = 2;
/** Its size varies per object; str and int, the most common ones, are distinguished. */
const MEASURE = 4;
const MEASURE_STR = 8;
const MEASURE_INT = 16;
const MEASURES: ReadonlyMap<number, number> = new Map([
  [SHAPE_STR, MEASURE_STR],
  [SHAPE_INT, MEASURE_INT],
]);
/** It owns memory elsewhere, such as a dict's table. */
const FOLLOW = 32;
const FOLLOW_DICT = 64;
const FOLLOWS: ReadonlyMap<number, number> = new Map([
  [SHAPE_DICT, FOLLOW_DICT],
  [SHAPE_ORDERED_DICT, FOLLOW_DICT],
  [SHAPE_TYPE, FOLLOW],
  [SHAPE_NDARRAY, FOLLOW],
  [SHAPE_ARRAY, FOLLOW],
  [SHAPE_C_DATA, FOLLOW],
  [SHAPE_TENSOR, FOLLOW],
]);

/** The header of a dict's table; small_objects.ts shows the layout. */
const TABLE_HEAD: Bytes = 40;

class CensusCounter implements HeapVisitor {
  #objects = new Float64Array(1024);
  #bytes = new Float64Array(1024);
  #buffers = new Float64Array(1024);
  #tracked = new Float64Array(1024);
  #efforts = new Uint8Array(1024);
  readonly #deferred: DeferredTables;

  constructor(
    memory: Memory,
    readonly layout: HeapLayout,
    readonly types: TypeTable,
  ) {
    this.#deferred = new DeferredTables(memory, layout);
  }

  objects(found: FoundObjects): void {
    const { types, layout } = this;
    const { words, base, places, rooms } = found;
    const end = base + words.byteLength;
    this.#makeRoom(types.count);
    const [objects, bytes, tracked] = [this.#objects, this.#bytes, this.#tracked];
    for (let n = 0; n < found.count; n++) {
      const row = found.types[n] ?? 0;
      const at = places[n] ?? 0;
      const room = rooms[n] ?? 0;
      const effort = this.#efforts[row] || this.#judge(row);
      addAt(objects, row, 1);
      if (effort & SEE_TRACKED && (words[at - 4] !== 0 || words[at - 3] !== 0)) {
        addAt(tracked, row, 1);
      }
      if (effort & MEASURE_STR) {
        bytes[row] =
          (bytes[row] ?? 0) + (types.of(row).preHeader + strBytes(layout, words, at, room));
      } else if (effort & MEASURE_INT) {
        const own = intBytes(layout, types.of(row).basicSize, words, at);
        bytes[row] = (bytes[row] ?? 0) + (types.of(row).preHeader + Math.min(own, room));
      } else if (effort & MEASURE) {
        bytes[row] = (bytes[row] ?? 0) + ownBytes(types.of(row), layout, words, at, room);
      }
      if (effort & FOLLOW_DICT) {
        const keys = (words[at + 8] ?? 0) + (words[at + 9] ?? 0) * 2 ** 32;
        const isSplit = words[at + 10] !== 0 || words[at + 11] !== 0;
        // Most tables are near their dict, in memory that was already read.
        const isNear = keys >= base && keys + TABLE_HEAD < end && ((words[at + 8] ?? 0) & 7) === 0;
        const table = isNear && !isSplit ? ownTableBytes(layout, words, (keys - base) >>> 2) : 0;
        if (table > 0) {
          bytes[row] = (bytes[row] ?? 0) + table;
        } else {
          this.#deferred.addDict(row, keys, isSplit);
        }
      } else if (effort & FOLLOW) {
        this.#follow(row, found, n);
      }
    }
  }

  #judge(row: TypeRow): number {
    const { types } = this;
    const type = types.of(row);
    const measure = fixedBytes(type) === null ? (MEASURES.get(type.shape) ?? MEASURE) : 0;
    const effort =
      JUDGED | (type.isGc ? SEE_TRACKED : 0) | measure | (FOLLOWS.get(type.shape) ?? 0);
    this.#efforts[row] = effort;
    return effort;
  }

  #follow(row: TypeRow, found: FoundObjects, n: number): void {
    const { words } = found;
    const at = found.places[n] ?? 0;
    switch (this.types.of(row).shape) {
      case SHAPE_TYPE:
        this.#deferred.addTypeKeys(row, addressOf(found, n) + this.layout.heapTypeCachedKeys);
        break;
      case SHAPE_NDARRAY:
        this.#deferred.addNdarray(row, words, at);
        break;
      case SHAPE_ARRAY:
        this.#deferred.addArray(row, words, at);
        break;
      case SHAPE_C_DATA:
        addAt(this.#buffers, row, ownDataBytes(words, at));
        break;
      case SHAPE_TENSOR:
        this.#deferred.addTensor(row, addressOf(found, n));
        break;
    }
  }

  share(figures: ScanFigures): CensusShare {
    this.#deferred.resolve((row, bytes) => {
      addAt(this.#bytes, row, bytes);
    });
    const met = Array.from({ length: this.#objects.length }, (_, row) => row).filter(
      (row) => (this.#objects[row] ?? 0) > 0,
    );
    const place = new Map(met.map((row, n) => [row, n]));
    const column = (values: Float64Array) => Float64Array.from(met, (row) => values[row] ?? 0);
    return {
      typeNames: met.map((row) => this.types.name(row)),
      modules: met.map((row) => this.types.module(row)),
      objects: column(this.#objects),
      bytes: Float64Array.from(
        met,
        (row) =>
          (this.#bytes[row] ?? 0) +
          (this.#objects[row] ?? 0) * (fixedBytes(this.types.of(row)) ?? 0),
      ),
      bufferBytes: Float64Array.from(
        met,
        (row) =>
          (this.#buffers[row] ?? 0) + (this.#objects[row] ?? 0) * this.types.of(row).inlineValues,
      ),
      tracked: column(this.#tracked),
      figures,
      storages: this.#deferred
        .storages()
        .map((storage) => ({ ...storage, row: present(place.get(storage.row)) })),
      arrayData: this.#deferred.arrayData(),
    };
  }

  #makeRoom(rows: number): void {
    if (rows <= this.#objects.length) {
      return;
    }
    const wider = (values: Float64Array) => {
      const grown = new Float64Array(rows * 2);
      grown.set(values);
      return grown;
    };
    this.#objects = wider(this.#objects);
    this.#bytes = wider(this.#bytes);
    this.#buffers = wider(this.#buffers);
    this.#tracked = wider(this.#tracked);
    this.#efforts = new Uint8Array(rows * 2); // determined again
  }
}
