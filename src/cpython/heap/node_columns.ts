/** The first pass over a copy: every object becomes a row, in the order of addresses. */

import { growingFloat64, growingUint32 } from "../../model/growing_column.js";
import type { Bytes } from "../../model/units.js";
import type { HeapVisitor } from "./heap_scan.js";
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

  object(row: number, address: number, at: number, words: Uint32Array, room: Bytes): void {
    this.address.push(address);
    this.type.push(row);
    this.shallow.push(
      ownBytes(this.types, this.layout, row, words, at, room) + this.types.inlineValues[row],
    );
    this.room.push(room < MOST_ROOM ? room : MOST_ROOM);
  }

  block(): void {
    // What is no object is reached through its owner.
  }
}
