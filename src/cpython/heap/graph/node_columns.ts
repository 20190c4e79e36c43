/** The first pass over a copy: every object becomes a row, in address order. */

import { growingFloat64, growingUint32 } from "../../../model/base/growing_column.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapLayout } from "../memory/layout.js";
import { addressOf, type FoundObjects, type HeapVisitor } from "../objects/heap_scan.js";
import { ownBytes } from "../objects/object_size.js";
import { lastAtMost } from "../objects/owned_buffers.js";
import type { TypeRow, TypeTable } from "../objects/type_table.js";

const MOST_ROOM = 0xffffffff;

export interface ObjectRow {
  readonly address: Address;
  readonly type: TypeRow;
  /** Size without tables elsewhere. */
  readonly shallow: Bytes;
  /** Bytes from the object to the end of its block; the largest u32 if there are more. */
  readonly room: Bytes;
}

/** Objects as columns, in address order. */
export interface ObjectColumns {
  readonly address: Float64Array;
  readonly type: Uint32Array;
  readonly shallow: Float64Array;
  readonly room: Uint32Array;
}

export class NodeColumns implements HeapVisitor {
  readonly #address = growingFloat64();
  readonly #type = growingUint32();
  readonly #shallow = growingFloat64();
  readonly #room = growingUint32();

  constructor(
    readonly types: TypeTable,
    readonly layout: HeapLayout,
  ) {}

  objects(found: FoundObjects): void {
    const { types, layout } = this;
    for (let n = 0; n < found.count; n++) {
      const row = found.types[n] ?? 0;
      const room = found.rooms[n] ?? 0;
      const type = types.of(row);
      const own = ownBytes(type, layout, found.words, found.places[n] ?? 0, room);
      this.#address.push(addressOf(found, n));
      this.#type.push(row);
      this.#shallow.push(own + type.inlineValues);
      this.#room.push(room < MOST_ROOM ? room : MOST_ROOM);
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

/** The same columns with a few more objects, inserted in order or replacing others. */
export function withObjects(columns: ObjectColumns, more: readonly ObjectRow[]): ObjectColumns {
  const rowOf = ({ address }: ObjectRow, { address: all }: ObjectColumns) =>
    lastAtMost(all.length, (row) => all[row] ?? 0, address);
  const isThere = (object: ObjectRow) => columns.address[rowOf(object, columns)] === object.address;
  const added = more.filter((object) => !isThere(object)).sort((a, b) => a.address - b.address);
  const length = columns.address.length + added.length;
  const wider = {
    address: new Float64Array(length),
    type: new Uint32Array(length),
    shallow: new Float64Array(length),
    room: new Uint32Array(length),
  };
  let from = 0;
  const copyUntil = (row: number, before: number) => {
    for (const name of ["address", "type", "shallow", "room"] as const) {
      wider[name].set(columns[name].subarray(from, row), from + before);
    }
    from = row;
  };
  for (const [n, object] of added.entries()) {
    const row = rowOf(object, columns) + 1;
    copyUntil(row, n);
    wider.address[row + n] = object.address;
  }
  copyUntil(columns.address.length, added.length);
  for (const object of more) {
    const row = rowOf(object, wider);
    wider.type[row] = object.type;
    wider.shallow[row] = object.shallow;
    wider.room[row] = Math.min(object.room, MOST_ROOM);
  }
  return wider;
}
