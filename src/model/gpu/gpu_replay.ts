/**
 * The memory that a device's allocator held at every moment of a trace. Moment m is the state after m events of the
 * device: 0 is where the trace begins, `events` where it ends and the snapshot's segments are exact.
 *
 *     moment   0     1     2     3
 *     event     └─0──┴──1──┴──2─┘        start, freed and end below are event numbers
 *
 * An allocation is held at moments m with start < m <= end; start is -1 if it existed before the trace; end is
 * the number of events if it still exists.
 */
import { float64At, int32At, uint16At, uint32At } from "../base/columns.js";
import type { Address, Bytes } from "../base/units.js";

export interface GpuAllocationColumns {
  readonly length: number;
  readonly address: Float64Array;
  /** Bytes that the program requested. */
  readonly size: Float64Array;
  /** Bytes of the block; for one freed before the end, a lower bound. */
  readonly blockSize: Float64Array;
  readonly start: Int32Array;
  /** When the program freed it; it is held until `end` if another stream still uses it. */
  readonly freed: Int32Array;
  readonly end: Int32Array;
  readonly stack: Uint32Array;
  readonly stream: Uint16Array;
  /** String id, as "[0,0]"; 0 if unknown. */
  readonly pool: Uint32Array;
}

/** Memory that the allocator reserved from the driver: segments, and mapped ranges of expandable ones. */
export interface GpuRangeColumns {
  readonly length: number;
  readonly address: Float64Array;
  readonly size: Float64Array;
  readonly start: Int32Array;
  readonly end: Int32Array;
  readonly stream: Uint16Array;
  readonly pool: Uint32Array;
  readonly expandable: Uint8Array;
}

export interface Disagreement {
  /** Event number of the device; the number of events for the end itself. */
  readonly event: number;
  readonly address: Address;
  readonly detail: string;
}

export interface GpuReplay {
  readonly device: number;
  /** Rows of the snapshot's events that belong to this device. */
  readonly firstEvent: number;
  readonly events: number;
  /** By moment, `events` + 1 each: requested bytes of held allocations, and bytes reserved from the driver. */
  readonly requested: Float64Array;
  readonly reserved: Float64Array;
  readonly allocations: GpuAllocationColumns;
  readonly ranges: GpuRangeColumns;
  /** The first of them, and their number. */
  readonly disagreements: readonly Disagreement[];
  readonly disagreementCount: number;
  /** True if the trace begins with an empty allocator. */
  readonly complete: boolean;
}

/** Rows of `allocations` held at a moment, in the order of their addresses. */
export function heldAt({ allocations }: GpuReplay, moment: number): Uint32Array {
  const { start, end, address, length } = allocations;
  let count = 0;
  for (let row = 0; row < length; row++) {
    if (int32At(start, row) < moment && moment <= int32At(end, row)) {
      count++;
    }
  }
  const rows = new Uint32Array(count);
  for (let row = 0, at = 0; row < length; row++) {
    if (int32At(start, row) < moment && moment <= int32At(end, row)) {
      rows[at++] = row;
    }
  }
  return rows.sort((a, b) => float64At(address, a) - float64At(address, b));
}

/** Rows of `ranges` held at a moment, in the order of their addresses. */
export function rangesAt({ ranges }: GpuReplay, moment: number): Uint32Array {
  const rows: number[] = [];
  for (let row = 0; row < ranges.length; row++) {
    if (int32At(ranges.start, row) < moment && moment <= int32At(ranges.end, row)) {
      rows.push(row);
    }
  }
  return Uint32Array.from(
    rows.sort((a, b) => float64At(ranges.address, a) - float64At(ranges.address, b)),
  );
}

/** Memory that may contain a block: a segment, or neighbouring mapped ranges of an expandable one. */
export interface Span {
  readonly address: Address;
  readonly size: Bytes;
  readonly stream: number;
  readonly pool: number;
  readonly expandable: boolean;
}

/** The segments of a moment by address, with the ranges of expandable ones joined if adjacent. */
export function spansAt(replay: GpuReplay, moment: number): Span[] {
  const { address, size, stream, pool, expandable } = replay.ranges;
  const spans: Span[] = [];
  for (const row of rangesAt(replay, moment)) {
    const last = spans[spans.length - 1];
    const joins =
      last?.expandable === true &&
      expandable[row] === 1 &&
      last.address + last.size === address[row] &&
      last.stream === stream[row] &&
      (last.pool === pool[row] || last.pool === 0 || pool[row] === 0);
    const span = {
      address: joins ? last.address : float64At(address, row),
      size: float64At(size, row) + (joins ? last.size : 0),
      stream: uint16At(stream, row),
      pool: joins ? last.pool || uint32At(pool, row) : uint32At(pool, row),
      expandable: expandable[row] === 1,
    };
    if (joins) {
      spans.pop();
    }
    spans.push(span);
  }
  return spans;
}

/** Free memory between the blocks of one span. */
interface Gap {
  readonly span: Span;
  readonly address: Address;
  readonly size: Bytes;
}

/**
 * Memory that the allocator holds but nothing uses at a moment. Blocks freed before the end may have been
 * larger than known, so before the end the gaps are an upper bound of free memory.
 */
export function gapsAt(replay: GpuReplay, moment: number): Gap[] {
  const { allocations } = replay;
  const held = heldAt(replay, moment);
  const gaps: Gap[] = [];
  let next = 0;
  for (const span of spansAt(replay, moment)) {
    const to = span.address + span.size;
    let at = span.address;
    while (next < held.length && float64At(allocations.address, uint32At(held, next)) < at) {
      next++;
    }
    for (
      ;
      next < held.length && float64At(allocations.address, uint32At(held, next)) < to;
      next++
    ) {
      const block = uint32At(held, next);
      const address = float64At(allocations.address, block);
      if (address > at) {
        gaps.push({ span, address: at, size: address - at });
      }
      at = Math.max(at, address + float64At(allocations.blockSize, block));
    }
    if (to > at) {
      gaps.push({ span, address: at, size: to - at });
    }
  }
  return gaps;
}
