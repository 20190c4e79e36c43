import { describe, expect, test } from "vitest";
import { uint32At } from "../../../src/model/base/columns.js";
import { present } from "../../../src/model/base/present.js";
import type { NamedHeapTree } from "../../../src/model/documents/heap/heap_page.js";
import { TreeKind } from "../../../src/model/heap/heap_tree.js";
import { layOut, tileAt } from "./mapLayout.js";
import { holderPathTo, nameOf, viewTree } from "./treeView.js";

/** Rows as [parent, retained, steps]; the first is the root. */
function treeOf(rows: readonly (readonly [number, number, readonly string[]])[]): NamedHeapTree {
  const column = (value: (row: readonly [number, number, readonly string[]]) => number) =>
    Float64Array.from(rows, value);
  const nothing = new Float64Array(rows.length);
  return {
    rows: rows.length,
    parent: Uint32Array.from(rows, ([parent]) => parent),
    kind: Uint8Array.from(rows, (_, row) => (row === 0 ? TreeKind.root : TreeKind.object)),
    type: new Uint32Array(rows.length),
    count: nothing.map(() => 1),
    shallow: nothing,
    retained: column(([, retained]) => retained),
    objects: nothing,
    address: nothing,
    typeNames: ["dict"],
    places: {
      start: new Uint32Array(2),
      row: new Uint32Array(0),
      objects: new Float64Array(0),
      bytes: new Float64Array(0),
    },
    steps: rows.map(([, , steps]) => steps),
  };
}

describe("the treemap", () => {
  const tree = treeOf([
    [0, 1000, ["roots"]],
    [0, 600, ["module app"]],
    [0, 300, ["module lib"]],
    [1, 400, ["__dict__"]],
    [3, 250, ["CACHE"]],
    [1, 0, ["empty"]],
  ]);
  const view = viewTree(tree);

  test("areas are proportional to bytes; each is inside its parent", () => {
    const tiles = layOut(view, 0, 1000, 1000);
    const byRow = new Map(tiles.map((tile) => [tile.row, tile]));
    const area = (row: number) => {
      const { x0, x1, y0, y1 } = byRow.get(row) ?? { x0: 0, x1: 0, y0: 0, y1: 0 };
      return (x1 - x0) * (y1 - y0);
    };
    expect(area(1) / area(2)).toBeCloseTo(2, 1);
    // 100 of 1000 bytes are the root's own: nothing covers them.
    expect((area(1) + area(2)) / area(0)).toBeCloseTo(0.9, 1);
    expect(byRow.has(5)).toBe(false);
    for (const { row, x0, x1, y0, y1 } of tiles.slice(1)) {
      const above = present(byRow.get(uint32At(tree.parent, row)));
      expect(x0 >= above.x0 && x1 <= above.x1 && y0 >= above.y0 && y1 <= above.y1).toBe(true);
    }
    const inner = present(byRow.get(4));
    expect(tileAt(tiles, (inner.x0 + inner.x1) / 2, inner.y1 - 3)?.row).toBe(4);
    expect(tileAt(tiles, 2000, 5)).toBeNull();
  });

  test("100,000 levels, no bytes, or no room: no endless loop and no wrong drawing", () => {
    const deep = treeOf(
      Array.from({ length: 100_000 }, (_, row) => [Math.max(row - 1, 0), 5000, [`${row}`]]),
    );
    expect(layOut(viewTree(deep), 0, 800, 600).length).toBeLessThan(30);
    expect(holderPathTo(deep, 99_999).length).toBeLessThan(30);
    expect(holderPathTo(deep, 99_999).at(-1)).toBe("99999");
    expect(layOut(viewTree(treeOf([[0, 0, ["roots"]]])), 0, 800, 600)).toEqual([]);
    expect(layOut(view, 0, 0, 600)).toEqual([]);
  });

  test("a path names the holders, without the dict of attributes", () => {
    expect(holderPathTo(tree, 4)).toEqual(["module app", "CACHE"]);
    expect(holderPathTo(tree, 3)).toEqual(["module app", "__dict__"]);
    expect(nameOf(tree, 0)).toBe("all");
    expect([...view.children(1)]).toEqual([3, 5]);
  });
});
