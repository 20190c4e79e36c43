/** The first pass over a copy: every object becomes a row, in address order, after the rows of the roots. */

import { itemAt } from "../../../model/base/columns.js";
import {
  type GrowingColumn,
  growingFloat64,
  growingUint32,
} from "../../../model/base/growing_column.js";
import type { Address, Bytes, Objects } from "../../../model/base/units.js";
import { tooManyObjects } from "../../../model/errors/heap_errors.js";
import type { HeapLayout } from "../memory/layout.js";
import type { FoundObjects, HeapVisitor } from "../objects/heap_scan.js";
import { fixedBytes, ownBytes } from "../objects/object_size.js";
import { lastAtMost } from "../objects/owned_buffers.js";
import { refersToNothing, type TypeRow, type TypeTable } from "../objects/type_table.js";
import { FIRST_OBJECT } from "./roots.js";

const MOST_ROOM = 0xffffffff;
/** Few objects take less, and if most do, the columns grow. */
const LEAST_OBJECT: Bytes = 32;

export interface ObjectRow {
  readonly address: Address;
  readonly type: TypeRow;
  /** Size without tables elsewhere. */
  readonly shallow: Bytes;
  /**
   * Bytes from the object to the end of its block; the largest u32 if there are more. Of an object that refers to
   * nothing, its reference count, since nothing else of it is needed later.
   */
  readonly room: number;
}

/** Objects as columns by node, in address order; the rows of the roots are 0. */
export interface ObjectColumns {
  readonly address: Float64Array;
  readonly type: Uint32Array;
  readonly shallow: Float64Array;
  readonly room: Uint32Array;
}

export class NodeColumns implements HeapVisitor {
  readonly #address: GrowingColumn<Float64Array>;
  readonly #type: GrowingColumn<Uint32Array>;
  readonly #shallow: GrowingColumn<Float64Array>;
  readonly #room: GrowingColumn<Uint32Array>;
  /** By type: the size of each object, 0 if it varies, and whether they refer to nothing. */
  readonly #sizes: Bytes[] = [];
  readonly #isLeaf: boolean[] = [];

  /** `bytes`: the size of the heap, of which the columns' length follows. */
  constructor(
    readonly types: TypeTable,
    readonly layout: HeapLayout,
    bytes: Bytes,
    readonly mostObjects: Objects,
  ) {
    // Rows that are not used stay untouched, and take no memory.
    const rows = FIRST_OBJECT + Math.ceil(bytes / LEAST_OBJECT);
    this.#address = growingFloat64(rows);
    this.#type = growingUint32(rows);
    this.#shallow = growingFloat64(rows);
    this.#room = growingUint32(rows);
    for (const column of [this.#address, this.#type, this.#shallow, this.#room]) {
      column.length = FIRST_OBJECT;
    }
  }

  objects(found: FoundObjects): void {
    const { types, layout, mostObjects } = this;
    if (this.#address.length > mostObjects) {
      throw tooManyObjects(mostObjects);
    }
    for (let row = this.#sizes.length; row < types.count; row++) {
      const type = types.of(row);
      const fixed = fixedBytes(type);
      this.#sizes.push(fixed === null ? 0 : fixed + type.inlineValues);
      this.#isLeaf.push(refersToNothing(type, layout));
    }
    const { count, words, base, places, rooms, types: rows } = found;
    const [sizes, isLeaf] = [this.#sizes, this.#isLeaf];
    let to = this.#address.length;
    const address = this.#address.extend(count);
    const typeOf = this.#type.extend(count);
    const shallow = this.#shallow.extend(count);
    const room = this.#room.extend(count);
    for (let n = 0; n < count; n++, to++) {
      const row = rows[n] ?? 0;
      const place = places[n] ?? 0;
      const left = rooms[n] ?? 0;
      const size = sizes[row] ?? 0;
      address[to] = base + place * 4;
      typeOf[to] = row;
      shallow[to] = size > 0 ? size : this.#sizeOf(row, found, n);
      room[to] = isLeaf[row] ? (words[place] ?? 0) : left < MOST_ROOM ? left : MOST_ROOM;
    }
  }

  #sizeOf(row: TypeRow, { words, places, rooms }: FoundObjects, n: number): Bytes {
    const type = this.types.of(row);
    const own = ownBytes(type, this.layout, words, places[n] ?? 0, rooms[n] ?? 0);
    return own + type.inlineValues;
  }

  /** Adds a few more objects in address order, or in place of others. The columns are not copied. */
  insert(more: readonly ObjectRow[]): void {
    const rowOf = ({ address }: ObjectRow) =>
      lastAtMost(this.#address.length, (row) => this.#address.at(row), address);
    const isThere = (object: ObjectRow) => this.#address.at(rowOf(object)) === object.address;
    const added = more.filter((object) => !isThere(object)).sort((a, b) => a.address - b.address);
    const places = added.map((object) => rowOf(object) + 1);
    const widened = <Column extends Float64Array | Uint32Array>(column: GrowingColumn<Column>) => {
      let end = column.length;
      const rows = column.extend(added.length);
      for (let n = added.length - 1; n >= 0; n--) {
        const place = itemAt(places, n);
        rows.copyWithin(place + n + 1, place, end);
        end = place;
      }
      return rows;
    };
    const addresses = widened(this.#address);
    const types = widened(this.#type);
    const shallow = widened(this.#shallow);
    const room = widened(this.#room);
    for (const [n, { address }] of added.entries()) {
      addresses[itemAt(places, n) + n] = address;
    }
    for (const object of more) {
      const row = rowOf(object);
      types[row] = object.type;
      shallow[row] = object.shallow;
      room[row] = Math.min(object.room, MOST_ROOM);
    }
  }

  view(): ObjectColumns {
    return {
      address: this.#address.view(),
      type: this.#type.view(),
      shallow: this.#shallow.view(),
      room: this.#room.view(),
    };
  }
}

/** Without the rows of the roots. */
export function objectsOf({ address, type, shallow, room }: ObjectColumns): ObjectColumns {
  return {
    address: address.subarray(FIRST_OBJECT),
    type: type.subarray(FIRST_OBJECT),
    shallow: shallow.subarray(FIRST_OBJECT),
    room: room.subarray(FIRST_OBJECT),
  };
}
