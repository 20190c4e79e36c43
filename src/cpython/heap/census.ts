/**
 * The census: how many objects of each type there are, and how many bytes they take, from one scan of the
 * heap (heap_scan.ts). Tables that lie outside their object are looked up at the end, in the order of
 * their addresses, so that memory is read forwards and in large pieces.
 */
import type { Memory } from "../../linux/memory.js";
import type { Bytes } from "../../model/units.js";
import { DeferredTables } from "./deferred_tables.js";
import { heapRegions } from "./heap_regions.js";
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

/** Counts every object of a program. Never stops it; exact where it stands still. */
export function takeCensus(memory: Memory, layout: HeapLayout): Census {
  const types = new TypeTable(memory, layout);
  const counter = new CensusCounter(memory, layout, types);
  const scan = new HeapScan(memory, layout, types, counter);
  scan.run(heapRegions(memory));
  counter.finish();
  return counter.census(scan.figures);
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

  finish(): void {
    this.#deferred.resolve((row, bytes, buffers) => {
      this.#bytes[row] += bytes;
      this.#buffers[row] += buffers;
    });
  }

  census(figures: ScanFigures): Census {
    const rows: number[] = [];
    // Several types may bear one name (a class made anew): they are one row of the census.
    const byName = new Map<string, number>();
    for (let row = 0; row < Math.min(this.types.count, this.#objects.length); row++) {
      if (this.#objects[row] === 0) {
        continue;
      }
      const name = this.types.name(row);
      const first = byName.get(name);
      if (first === undefined) {
        byName.set(name, row);
        rows.push(row);
        continue;
      }
      this.#objects[first] += this.#objects[row];
      this.#bytes[first] += this.#bytes[row];
      this.#buffers[first] += this.#buffers[row];
      this.#tracked[first] += this.#tracked[row];
    }
    rows.sort(
      (a, b) => this.#bytes[b] + this.#buffers[b] - (this.#bytes[a] + this.#buffers[a]) || a - b,
    );
    const column = (values: Float64Array) => Float64Array.from(rows, (row) => values[row]);
    return {
      typeNames: rows.map((row) => this.types.name(row)),
      modules: rows.map((row) => this.types.module(row)),
      objects: column(this.#objects),
      bytes: column(this.#bytes),
      bufferBytes: column(this.#buffers),
      tracked: column(this.#tracked),
      figures,
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
