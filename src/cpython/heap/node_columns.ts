/** The first pass over a copy: every object becomes a row, in the order of addresses. */

import { growingFloat64, growingUint32 } from "../../model/growing_column.js";
import type { Bytes } from "../../model/units.js";
import { addressOf, type FoundObjects, type HeapVisitor } from "./heap_scan.js";
import type { HeapLayout } from "./layout.js";
import { ownBytes } from "./object_size.js";
import type { TypeTable } from "./type_table.js";

const MOST_ROOM = 0xffffffff;

export class NodeColumns implements HeapVisitor {
  readonly address = growingFloat64();
  readonly type = growingUint32();
  /** Without tables that lie elsewhere. */
  readonly shallow = growingFloat64();
  /** Bytes from the object to its block's end; the largest u32 where it is more. */
  readonly room = growingUint32();

  constructor(
    readonly types: TypeTable,
    readonly layout: HeapLayout,
  ) {}

  objects(found: FoundObjects): void {
    const { types, layout } = this;
    for (let n = 0; n < found.count; n++) {
      const row = found.types[n] as number;
      const room = found.rooms[n] as Bytes;
      const own = ownBytes(types, layout, row, found.words, found.places[n] as number, room);
      this.address.push(addressOf(found, n));
      this.type.push(row);
      this.shallow.push(own + (types.inlineValues[row] as Bytes));
      this.room.push(room < MOST_ROOM ? room : MOST_ROOM);
    }
  }
}
