/** Allocations during backward replay: the current ones by address, and all lifetimes. */

import { float64At, int32At, uint16At, uint32At } from "../../model/base/columns.js";
import type { Address, Bytes } from "../../model/base/units.js";
import type { GpuAllocationColumns } from "../../model/gpu/gpu_replay.js";
import { BlockState, type GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import { PieceTable, rowInPiece } from "../snapshot/piece_table.js";
import { AddressMap } from "./address_map.js";
import { roundingOf } from "./block_size.js";

const BEFORE_TRACE = -1;
/** In the column `freed`: its free_completed was seen, but not yet its free_requested. */
const AWAITED = -2;

export class OpenAllocations {
  readonly #held = new AddressMap();
  readonly #rows = new PieceTable((rows) => ({
    address: new Float64Array(rows),
    size: new Float64Array(rows),
    blockSize: new Float64Array(rows),
    start: new Int32Array(rows),
    freed: new Int32Array(rows),
    end: new Int32Array(rows),
    stack: new Uint32Array(rows),
    stream: new Uint16Array(rows),
    pool: new Uint32Array(rows),
  }));

  readonly #rounded: (size: Bytes) => Bytes;

  /** @param trace the rows of its events */
  constructor(
    readonly snapshot: GpuSnapshot,
    readonly trace: { readonly first: number; readonly count: number },
  ) {
    this.#rounded = roundingOf(snapshot.settings);
  }

  /** A block of the snapshot that is in use at the end. */
  heldAtEnd(
    block: number,
    { stream, pool }: { readonly stream: number; readonly pool: number },
    state: number,
  ): void {
    const { blocks } = this.snapshot;
    const address = float64At(blocks.address, block);
    this.#held.set(address, this.#rows.length);
    const row = this.#rows.append();
    const { piece } = this.#rows;
    piece.address[row] = address;
    piece.size[row] = float64At(blocks.requested, block);
    piece.blockSize[row] = float64At(blocks.size, block);
    piece.start[row] = BEFORE_TRACE;
    piece.freed[row] = state === BlockState.pendingFree ? AWAITED : this.trace.count;
    piece.end[row] = this.trace.count;
    piece.stack[row] = uint32At(blocks.stack, block);
    piece.stream[row] = stream;
    piece.pool[row] = pool;
  }

  holds(address: Address): boolean {
    return this.#held.find(address) >= 0;
  }

  /** @returns false if nothing there waits for it. */
  requestFree(address: Address, event: number): boolean {
    const slot = this.#held.find(address);
    if (slot < 0) {
      return false;
    }
    const row = this.#held.at(slot);
    const { freed } = this.#rows.pieceOf(row);
    if (freed[rowInPiece(row)] !== AWAITED) {
      return false;
    }
    freed[rowInPiece(row)] = event;
    return true;
  }

  /** An allocation that ends with `event`. */
  add(event: number, requestedFree: boolean, pool: number): void {
    const { events } = this.snapshot;
    const freed = this.trace.first + event;
    const address = float64At(events.address, freed);
    const size = float64At(events.size, freed);
    this.#held.set(address, this.#rows.length);
    const row = this.#rows.append();
    const { piece } = this.#rows;
    piece.address[row] = address;
    piece.size[row] = size;
    piece.blockSize[row] = this.#rounded(size);
    piece.start[row] = BEFORE_TRACE;
    piece.freed[row] = requestedFree ? event : AWAITED;
    piece.end[row] = event;
    piece.stack[row] = 0;
    piece.stream[row] = uint16At(events.stream, freed);
    piece.pool[row] = pool;
  }

  /** @returns its bytes; undefined if nothing is held there. */
  begin(address: Address, event: number, stack: number): Bytes | undefined {
    const slot = this.#held.find(address);
    if (slot < 0) {
      return undefined;
    }
    const row = this.#held.at(slot);
    this.#held.remove(slot);
    const piece = this.#rows.pieceOf(row);
    piece.start[rowInPiece(row)] = event;
    if (stack !== 0) {
      piece.stack[rowInPiece(row)] = stack;
    }
    return piece.size[rowInPiece(row)];
  }

  finish(): GpuAllocationColumns {
    const columns = this.#rows.take();
    const { freed, end, length } = columns;
    for (let row = 0; row < length; row++) {
      if (freed[row] === AWAITED) {
        // The program freed it before the trace began, or the entry was lost.
        freed[row] = end[row] === this.trace.count ? BEFORE_TRACE : int32At(end, row);
      }
    }
    return columns;
  }
}
