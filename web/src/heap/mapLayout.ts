/** The treemap's rectangles: nested, squarified, down to what can be seen. */
import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import type { TreeView } from "./treeView.js";

export interface Tile {
  readonly row: number;
  readonly depth: number;
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
  /** Has rectangles within, and a line for its name above them. */
  readonly headed: boolean;
}

export const HEAD_HEIGHT = 17;
/** In square pixels: below this, a rectangle is a part of its parent's ground. */
const LEAST_AREA = 9;
const LEAST_HEADED_WIDTH = 46;
const LEAST_HEADED_HEIGHT = 40;
const MOST_DEPTH = 24;

/** Rectangles of `zoom` and what is below, each behind the one that it lies in. */
export function layOut(view: TreeView, zoom: number, width: number, height: number): Tile[] {
  const { retained } = view.tree;
  const whole = retained[zoom]!;
  if (width < 8 || height < 8 || !(whole > 0)) return [];
  const least = (whole * LEAST_AREA) / (width * height);
  const shown = ({ row, depth }: { row: number; depth: number }) =>
    depth >= MOST_DEPTH
      ? []
      : Array.from(view.children(row))
          .filter((child) => retained[child]! >= least && retained[child]! > 0)
          .map((child) => ({ row: child, depth: depth + 1 }));
  const root = hierarchy({ row: zoom, depth: 0 }, shown)
    .sum(() => 0)
    .each((node) => {
      // What is left out below stays in its parent's size, as ground that no rectangle covers.
      (node as { value: number }).value = retained[node.data.row]!;
    });
  const laid = treemap<{ row: number; depth: number }>()
    .tile(treemapSquarify.ratio(1.3))
    .size([width, height])
    .round(true)
    .paddingInner(1)
    .paddingOuter((node) => (isHeaded(node) ? 2 : 0))
    .paddingTop((node) => (isHeaded(node) ? HEAD_HEIGHT : 0))(root);
  const tiles: Tile[] = [];
  laid.eachBefore((node) => {
    const { x0, y0, x1, y1, data } = node;
    if (x1 - x0 >= 1 && y1 - y0 >= 1) {
      tiles.push({ row: data.row, depth: data.depth, x0, y0, x1, y1, headed: isHeaded(node) });
    }
  });
  return tiles;
}

function isHeaded(node: {
  readonly children?: unknown;
  readonly x0: number;
  readonly x1: number;
  readonly y0: number;
  readonly y1: number;
}): boolean {
  return (
    node.children !== undefined &&
    node.x1 - node.x0 >= LEAST_HEADED_WIDTH &&
    node.y1 - node.y0 >= LEAST_HEADED_HEIGHT
  );
}

/** The innermost rectangle at a point. */
export function tileAt(tiles: readonly Tile[], x: number, y: number): Tile | null {
  for (let n = tiles.length - 1; n >= 0; n--) {
    const tile = tiles[n]!;
    if (x >= tile.x0 && x < tile.x1 && y >= tile.y0 && y < tile.y1) return tile;
  }
  return null;
}
