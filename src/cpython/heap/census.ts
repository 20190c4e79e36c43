/**
 * The census: how many objects of each type there are, and how many bytes they take, from one scan of the
 * heap (heap_scan.ts). Tables that lie outside their object are looked up at the end, in the order of
 * their addresses, so that memory is read forwards and in large pieces.
 */
import type { Memory } from "../../linux/memory.js";
import type { Bytes } from "../../model/units.js";
import { DeferredTables, type Storage } from "./deferred_tables.js";
import { HashedAddresses } from "./hashed_addresses.js";
import { type HeapPart, wholeRegions } from "./heap_parts.js";
import { HeapScan, type HeapVisitor, type ScanFigures } from "./heap_scan.js";
import type { HeapLayout } from "./layout.js";
import { dictTables, ownBytes } from "./object_size.js";
import { ownDataBytes, ownTableBytes } from "./small_objects.js";
import {
  SHAPE_ARRAY,
  SHAPE_C_DATA,
  SHAPE_DICT,
  SHAPE_NDARRAY,
  SHAPE_ORDERED_DICT,
  SHAPE_TENSOR,
  SHAPE_TYPE,
  TypeTable,
} from "./type_table.js";

/** Objects by type, as columns; a row is a type of which there is at least one. */
export interface Census {
  readonly typeNames: readonly string[];
  /** Of the type: "builtins" for those. */
  readonly modules: readonly string[];
  readonly objects: Float64Array;
  /** As sys.getsizeof, added up. */
  readonly bytes: Float64Array;
  /** Beside `bytes`: memory that the objects own and getsizeof leaves out (tensors' storages). */
  readonly bufferBytes: Float64Array;
  /** Objects that the garbage collector tracks now. */
  readonly tracked: Float64Array;
  readonly figures: ScanFigures;
}

/** What one thread counted. Rows in the order in which types were met, some names several times. */
export interface CensusShare extends Census {
  /** Of tensors, several of which may share one; a row of the share, the data's address, bytes. */
  readonly storages: readonly Storage[];
  /** Addresses of arrays' data, which a tensor may use, too. */
  readonly arrayData: Float64Array;
}

/** Counts every object of a program. Never stops it; exact where it stands still. */
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

/** The census that shares are of, the largest type first. Counts a storage once, whoever met it. */
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
    // Several types may bear one name (a class made anew): they are one row of the census.
    const of = share.typeNames.map((name, n) => {
      const row = rows.get(name) ?? new CensusRow(name, share.modules[n] as string);
      rows.set(name, row);
      row.add(share.objects[n], share.bytes[n], share.bufferBytes[n], share.tracked[n]);
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

class CensusCounter implements HeapVisitor {
  #objects = new Float64Array(1024);
  #bytes = new Float64Array(1024);
  #buffers = new Float64Array(1024);
  #tracked = new Float64Array(1024);
  readonly #deferred: DeferredTables;

  constructor(
    memory: Memory,
    readonly layout: HeapLayout,
    readonly types: TypeTable,
  ) {
    this.#deferred = new DeferredTables(memory, layout);
  }

  object(row: number, address: number, at: number, words: Uint32Array, room: Bytes): void {
    const { types } = this;
    if (row >= this.#objects.length) {
      this.#grow(row);
    }
    this.#objects[row] += 1;
    this.#bytes[row] += ownBytes(types, this.layout, row, words, at, room);
    this.#buffers[row] += types.inlineValues[row];
    if (types.isGc[row] && (words[at - 4] !== 0 || words[at - 3] !== 0)) {
      this.#tracked[row] += 1;
    }
    switch (types.shapes[row]) {
      case SHAPE_DICT:
      case SHAPE_ORDERED_DICT: {
        const { keys, values } = dictTables(words, at);
        // Most tables lie near their dict, in what was read already.
        const near = at + (keys - address) / 4;
        const inSight = values === 0 && near >= 0 && near + 10 < words.length && near % 2 === 0;
        const bytes = inSight ? ownTableBytes(this.layout, words, near) : 0;
        if (bytes > 0) {
          this.#bytes[row] += bytes;
        } else {
          this.#deferred.addDict(row, keys, values !== 0);
        }
        break;
      }
      case SHAPE_TYPE:
        this.#deferred.addTypeKeys(row, address + this.layout.heapTypeCachedKeys);
        break;
      case SHAPE_NDARRAY:
        this.#deferred.addNdarray(row, words, at);
        break;
      case SHAPE_ARRAY:
        this.#deferred.addArray(row, words, at);
        break;
      case SHAPE_C_DATA:
        this.#buffers[row] += ownDataBytes(words, at);
        break;
      case SHAPE_TENSOR:
        this.#deferred.addTensor(row, address);
        break;
    }
  }

  block(): void {
    // A dict's table, a list's items: counted with the object that owns it.
  }

  share(figures: ScanFigures): CensusShare {
    this.#deferred.resolve((row, bytes) => {
      this.#bytes[row] += bytes;
    });
    const met = Array.from(
      { length: Math.min(this.types.count, this.#objects.length) },
      (_, row) => row,
    ).filter((row) => this.#objects[row] > 0);
    const place = new Map(met.map((row, n) => [row, n]));
    const column = (values: Float64Array) => Float64Array.from(met, (row) => values[row]);
    return {
      typeNames: met.map((row) => this.types.name(row)),
      modules: met.map((row) => this.types.module(row)),
      objects: column(this.#objects),
      bytes: column(this.#bytes),
      bufferBytes: column(this.#buffers),
      tracked: column(this.#tracked),
      figures,
      storages: this.#deferred
        .storages()
        .map((storage) => ({ ...storage, row: place.get(storage.row) as number })),
      arrayData: this.#deferred.arrayData(),
    };
  }

  #grow(row: number): void {
    const wider = (values: Float64Array) => {
      const grown = new Float64Array(Math.max(row + 1, values.length * 2));
      grown.set(values);
      return grown;
    };
    this.#objects = wider(this.#objects);
    this.#bytes = wider(this.#bytes);
    this.#buffers = wider(this.#buffers);
    this.#tracked = wider(this.#tracked);
  }
}
