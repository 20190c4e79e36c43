/**
 * The position of each node of a call tree: rows of rectangles, each row sorted by start, so that visible
 * rectangles are found by binary search. The cost of a frame depends on what is visible, not on the size of the
 * tree.
 *
 *   position   0 | 1         2     | 3   4   5
 *   row        0 | 1         1     | 2   2   2       rowStart = [0, 1, 3, 6]
 *   start..end  the node's interval in units of the value (bytes, objects)
 */
import { float64At, uint32At } from "../../../src/model/base/columns.js";

interface FlameTree {
  readonly length: number;
  /** `parent[i] < i`; row 0 is the root. */
  readonly parent: Uint32Array;
}

export interface FlameLayout {
  readonly rows: number;
  /** Offsets into the columns below, `rows + 1` of them. */
  readonly rowStart: Uint32Array;
  /** Node of the tree at a position. */
  readonly node: Uint32Array;
  /** Position of a node; {@link HIDDEN} if it has no width. */
  readonly position: Uint32Array;
  /** Position of the parent. */
  readonly parent: Uint32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
}

export const HIDDEN = 0xffffffff;

/** Lays out a tree breadth-first, the widest sibling first. `width` is by node and includes its children. */
export function layOut(tree: FlameTree, width: Float64Array): FlameLayout {
  const { length } = tree;
  const { offsets, children } = childrenByParent(tree, width);
  const node = new Uint32Array(length);
  const above = new Uint32Array(length);
  const position = new Uint32Array(length).fill(HIDDEN);
  const start = new Float64Array(length);
  const end = new Float64Array(length);
  const rowStart = [0];
  let placed = 0;
  if (length > 0 && float64At(width, 0) > 0) {
    end[0] = float64At(width, 0);
    position[0] = 0;
    placed = 1;
  }
  for (let rowBegin = 0; rowBegin < placed; ) {
    const rowEnd = placed;
    rowStart.push(rowEnd);
    for (let at = rowBegin; at < rowEnd; at++) {
      const owner = uint32At(node, at);
      let x = float64At(start, at);
      for (let i = uint32At(offsets, owner); i < uint32At(offsets, owner + 1); i++) {
        const child = uint32At(children, i);
        node[placed] = child;
        above[placed] = at;
        position[child] = placed;
        start[placed] = x;
        // Rounding must not push a child beyond its parent's edge, because rows must stay sorted.
        x = Math.min(x + float64At(width, child), float64At(end, at));
        end[placed] = x;
        placed++;
      }
    }
    rowBegin = rowEnd;
  }
  return {
    rows: rowStart.length - 1,
    rowStart: Uint32Array.from(rowStart),
    node: node.subarray(0, placed),
    position,
    parent: above.subarray(0, placed),
    start: start.subarray(0, placed),
    end: end.subarray(0, placed),
  };
}

/** Children with a width, grouped by parent (`offsets[p]` to `offsets[p + 1]`), the widest first. */
function childrenByParent({ length, parent }: FlameTree, width: Float64Array) {
  const offsets = new Uint32Array(length + 1);
  for (let i = 1; i < length; i++) {
    if (float64At(width, i) > 0) {
      offsets[uint32At(parent, i) + 1] = uint32At(offsets, uint32At(parent, i) + 1) + 1;
    }
  }
  for (let i = 0; i < length; i++) {
    offsets[i + 1] = uint32At(offsets, i + 1) + uint32At(offsets, i);
  }
  const next = offsets.slice(0, length);
  const children = new Uint32Array(uint32At(offsets, length));
  for (let i = 1; i < length; i++) {
    if (float64At(width, i) > 0) {
      const at = uint32At(next, uint32At(parent, i));
      children[at] = i;
      next[uint32At(parent, i)] = at + 1;
    }
  }
  for (let i = 0; i < length; i++) {
    if (uint32At(offsets, i + 1) - uint32At(offsets, i) > 1) {
      children
        .subarray(uint32At(offsets, i), uint32At(offsets, i + 1))
        .sort((a, b) => float64At(width, b) - float64At(width, a) || a - b);
    }
  }
  return { offsets, children };
}

/** First position in a row whose rectangle ends after `x`; the row's end if there is none. */
export function firstEndingAfter(layout: FlameLayout, row: number, x: number): number {
  return firstAbove(
    layout.end,
    uint32At(layout.rowStart, row),
    uint32At(layout.rowStart, row + 1),
    x,
  );
}

/** The position at `x` in a row, or -1 if the row is empty there. */
export function positionAt(layout: FlameLayout, row: number, x: number): number {
  if (row < 0 || row >= layout.rows) {
    return -1;
  }
  const at = firstEndingAfter(layout, row, x);
  return at < uint32At(layout.rowStart, row + 1) && float64At(layout.start, at) <= x ? at : -1;
}

/** Row of a position. */
export function rowOf(layout: FlameLayout, position: number): number {
  let low = 0;
  let high = layout.rows - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (uint32At(layout.rowStart, middle) <= position) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/** Visits the visible parts of a row between two values: `visit(from, to)` for each rectangle of at least a pixel
 * (`to = from + 1`), and once for each run of thinner ones that share a pixel. */
export function visitRow(
  layout: FlameLayout,
  row: number,
  view: { readonly start: number; readonly end: number; readonly unitsPerPixel: number },
  visit: (from: number, to: number) => void,
): void {
  const { start, end } = layout;
  const stop = uint32At(layout.rowStart, row + 1);
  let at = firstEndingAfter(layout, row, view.start);
  while (at < stop && float64At(start, at) < view.end) {
    let next = at + 1;
    if (float64At(end, at) - float64At(start, at) < view.unitsPerPixel) {
      next = Math.max(next, firstAbove(end, next, stop, float64At(start, at) + view.unitsPerPixel));
    }
    visit(at, next);
    at = next;
  }
}

/**
 * First index in [from, to) whose value is above `limit` in an ascending column, or `to`: uses a galloping
 * search, as the result is usually near.
 */
function firstAbove(column: Float64Array, from: number, to: number, limit: number): number {
  let step = 1;
  let low = from;
  while (low + step < to && float64At(column, low + step - 1) <= limit) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, to);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (float64At(column, middle) <= limit) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
