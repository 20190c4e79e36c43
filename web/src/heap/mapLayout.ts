/** The treemap's rectangles: nested and squarified, down to the smallest visible size. */

import { type HierarchyRectangularNode, hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { float64At, itemAt } from "../../../src/model/base/columns.js";
import type { TreeView } from "./treeView.js";

interface Cell {
  readonly row: number;
  readonly depth: number;
}

export interface Tile extends Cell {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
  /** Contains rectangles, with a line for its name above them. */
  readonly headed: boolean;
}

export const HEAD_HEIGHT = 17;
/** Smallest rectangle in square pixels; smaller ones become part of their parent's background. */
const LEAST_AREA = 9;
const LEAST_HEADED_WIDTH = 46;
const LEAST_HEADED_HEIGHT = 40;
const LEAST_SHOWN_SHARE = 0.2;
const MOST_DEPTH = 24;

/** Rectangles of `zoom` and its descendants, each after the one that contains it. */
export function layOut(view: TreeView, zoom: number, width: number, height: number): Tile[] {
  const { retained } = view.tree;
  const whole = float64At(retained, zoom);
  if (width < 8 || height < 8 || !(whole > 0)) {
    return [];
  }
  const least = (whole * LEAST_AREA) / (width * height);
  const shown = ({ row, depth }: Cell): Cell[] =>
    depth >= MOST_DEPTH
      ? []
      : Array.from(view.children(row))
          .filter((child) => float64At(retained, child) >= least && float64At(retained, child) > 0)
          .map((child) => ({ row: child, depth: depth + 1 }));
  const root = hierarchy<Cell>({ row: zoom, depth: 0 }, shown)
    .sum(() => 0)
    .each((node) => {
      // Omitted rectangles remain part of their parent's area, as uncovered background.
      (node as { value: number }).value = float64At(retained, node.data.row);
    });
  const laid = treemap<Cell>()
    .tile(treemapSquarify.ratio(1.3))
    .size([width, height])
    .round(true)
    .paddingInner(1)
    .paddingOuter((node) => (isHeaded(node) ? 2 : 0))
    .paddingTop((node) => (isHeaded(node) ? HEAD_HEIGHT : 0))(root);
  const tiles: Tile[] = [];
  const stack = [laid];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const { x0, y0, x1, y1, data } = node;
    if (x1 - x0 < 1 || y1 - y0 < 1) {
      continue;
    }
    const headed = isHeaded(node);
    tiles.push({ ...data, x0, y0, x1, y1, headed });
    // If no name fits, an inner rectangle would be mistaken for the whole.
    if (headed) {
      stack.push(...(node.children ?? []));
    }
  }
  return tiles;
}

/** There is room for its name, and its contents are visible. */
function isHeaded(node: HierarchyRectangularNode<Cell>): boolean {
  const { children = [], depth, x0, x1, y0, y1, value = 0 } = node;
  const shown = children.reduce((sum, child) => sum + (child.value ?? 0), 0);
  return (
    children.length > 0 &&
    (depth === 0 ||
      (x1 - x0 >= LEAST_HEADED_WIDTH &&
        y1 - y0 >= LEAST_HEADED_HEIGHT &&
        shown >= value * LEAST_SHOWN_SHARE))
  );
}

/** The innermost rectangle at a point. */
export function tileAt(tiles: readonly Tile[], x: number, y: number): Tile | null {
  for (let n = tiles.length - 1; n >= 0; n--) {
    const tile = itemAt(tiles, n);
    if (x >= tile.x0 && x < tile.x1 && y >= tile.y0 && y < tile.y1) {
      return tile;
    }
  }
  return null;
}
