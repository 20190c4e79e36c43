/** Allocations during backward replay: the current ones by address, and all lifetimes. */

import { float64At, uint32At } from "../../model/base/columns.js";
import type { Address, Bytes } from "../../model/base/units.js";
import type { GpuAllocationColumns } from "../../model/gpu/gpu_replay.js";
import { BlockState, type GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import {
  piecesOfFloat64,
  piecesOfInt32,
  piecesOfUint16,
  piecesOfUint32,
} from "../snapshot/piece_column.js";

const BEFORE_TRACE = -1;
/** In the column `freed`: its free_completed was seen, but not yet its free_requested. */
const AWAITED = -2;

export class OpenAllocations {
  readonly #held = new Map<Address, number>();
  readonly #columns = {
    address: piecesOfFloat64(),
    size: piecesOfFloat64(),
    blockSize: piecesOfFloat64(),
    start: piecesOfInt32(),
    freed: piecesOfInt32(),
    end: piecesOfInt32(),
    stack: piecesOfUint32(),
    stream: piecesOfUint16(),
    pool: piecesOfUint32(),
  };

  constructor(
    readonly events: number,
    readonly rounded: (size: Bytes) => Bytes,
  ) {}

  /** A block of the snapshot that is in use at the end. */
  heldAtEnd(
    { blocks }: GpuSnapshot,
    block: number,
    { stream, pool }: { readonly stream: number; readonly pool: number },
    state: number,
  ): void {
    const columns = this.#columns;
    this.#held.set(float64At(blocks.address, block), columns.address.length);
    columns.address.push(float64At(blocks.address, block));
    columns.size.push(float64At(blocks.requested, block));
    columns.blockSize.push(float64At(blocks.size, block));
    columns.start.push(BEFORE_TRACE);
    columns.freed.push(state === BlockState.pendingFree ? AWAITED : this.events);
    columns.end.push(this.events);
    columns.stack.push(uint32At(blocks.stack, block));
    columns.stream.push(stream);
    columns.pool.push(pool);
  }

  holds(address: Address): boolean {
    return this.#held.has(address);
  }

  /** @returns false if nothing there waits for it. */
  requestFree(address: Address, event: number): boolean {
    const row = this.#held.get(address);
    if (row === undefined || this.#columns.freed.at(row) !== AWAITED) {
      return false;
    }
    this.#columns.freed.set(row, event);
    return true;
  }

  add(freed: {
    readonly address: Address;
    readonly size: Bytes;
    readonly event: number;
    readonly requestedFree: boolean;
    readonly stream: number;
    readonly pool: number;
  }): void {
    const columns = this.#columns;
    this.#held.set(freed.address, columns.address.length);
    columns.address.push(freed.address);
    columns.size.push(freed.size);
    columns.blockSize.push(this.rounded(freed.size));
    columns.start.push(BEFORE_TRACE);
    columns.freed.push(freed.requestedFree ? freed.event : AWAITED);
    columns.end.push(freed.event);
    columns.stack.push(0);
    columns.stream.push(freed.stream);
    columns.pool.push(freed.pool);
  }

  /** @returns its bytes; undefined if nothing is held there. */
  begin(address: Address, event: number, stack: number): Bytes | undefined {
    const row = this.#held.get(address);
    if (row === undefined) {
      return undefined;
    }
    this.#held.delete(address);
    this.#columns.start.set(row, event);
    if (stack !== 0) {
      this.#columns.stack.set(row, stack);
    }
    return this.#columns.size.at(row);
  }

  finish(): GpuAllocationColumns {
    const { freed, end } = this.#columns;
    const length = freed.length;
    for (let row = 0; row < length; row++) {
      if (freed.at(row) === AWAITED) {
        // The program freed it before the trace began, or the entry was lost.
        freed.set(row, end.at(row) === this.events ? BEFORE_TRACE : end.at(row));
      }
    }
    const taken = Object.entries(this.#columns).map(([name, column]) => [name, column.take()]);
    return { ...Object.fromEntries(taken), length } as GpuAllocationColumns;
  }
}
