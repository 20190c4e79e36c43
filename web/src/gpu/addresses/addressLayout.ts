/**
 * Layout of the allocator's segments: one after the other in lines, with one named group for each pool and stream.
 */
import { float64At, uint32At } from "../../../../src/model/base/columns.js";
import { type GpuReplay, type Span, spansAt } from "../../../../src/model/gpu/gpu_replay.js";

export interface AddressBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  /** Row of the allocations; -1 for the segment itself. */
  readonly allocation: number;
  readonly span: Span;
}

/** The segments of one pool and stream. */
export interface AddressGroup {
  /** Upper edge of its name. */
  readonly y: number;
  readonly span: Span;
  size: number;
}

export interface AddressLayout {
  readonly boxes: readonly AddressBox[];
  readonly groups: readonly AddressGroup[];
  readonly height: number;
}

export const LINE = 18;
export const NAME_LINE = 20;
const LINE_GAP = 5;
const GAP = 3;
const LINES = 12;

/** @param held rows of the allocations of that moment, by address */
export function layOutAddresses(
  replay: GpuReplay,
  moment: number,
  held: Uint32Array,
  width: number,
): AddressLayout {
  const spans = spansAt(replay, moment).sort(
    (a, b) => a.pool - b.pool || a.stream - b.stream || a.address - b.address,
  );
  const total = spans.reduce((sum, { size }) => sum + size, 0);
  if (total === 0 || width <= 0) {
    return { boxes: [], groups: [], height: LINE };
  }
  const bytesPerPixel = total / (Math.max(1, width) * LINES);
  const boxes: AddressBox[] = [];
  const { address, blockSize } = replay.allocations;
  const groups: AddressGroup[] = [];
  let x = 0;
  let y = -LINE_GAP;
  for (const span of spans) {
    const last = groups[groups.length - 1];
    if (last?.span.pool === span.pool && last.span.stream === span.stream) {
      last.size += span.size;
    } else {
      y += groups.length === 0 || x === 0 ? LINE_GAP : LINE + 2 * LINE_GAP;
      groups.push({ y, span, size: span.size });
      x = 0;
      y += NAME_LINE;
    }
    let rest = Math.max(2, span.size / bytesPerPixel);
    if (x > 0 && x + Math.min(rest, width) > width) {
      x = 0;
      y += LINE + LINE_GAP;
    }
    let blocks = lowerBound(held, address, span.address);
    // A segment longer than a line continues in the next.
    for (let from = span.address; rest > 0; ) {
      const piece = Math.min(rest, width - x);
      const to = Math.min(span.address + span.size, from + piece * bytesPerPixel);
      boxes.push({ x, y, width: piece, allocation: -1, span });
      for (; blocks < held.length && float64At(address, uint32At(held, blocks)) < to; blocks++) {
        const row = uint32At(held, blocks);
        const left = Math.max(float64At(address, row), from);
        const right = Math.min(float64At(address, row) + float64At(blockSize, row), to);
        boxes.push({
          x: x + (left - from) / bytesPerPixel,
          y,
          width: Math.min((right - left) / bytesPerPixel, piece),
          allocation: row,
          span,
        });
        if (float64At(address, row) + float64At(blockSize, row) > to) {
          break;
        }
      }
      from = to;
      rest -= piece;
      x += piece + GAP;
      if (rest > 0 || x >= width) {
        x = 0;
        y += LINE + LINE_GAP;
      }
    }
  }
  return { boxes, groups, height: x === 0 ? y : y + LINE };
}

/** Number of rows (sorted by address) that begin below an address. */
function lowerBound(rows: Uint32Array, address: Float64Array, wanted: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (float64At(address, uint32At(rows, middle)) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
