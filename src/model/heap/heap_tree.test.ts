import { describe, expect, test } from "vitest";
import { float64At, uint8At, uint32At } from "../base/columns.js";
import { wholeNumbersFrom } from "../base/random.fixture.js";
import { findDominators } from "./heap_dominators.js";
import { type Edge, graphOf } from "./heap_graph.fixture.js";
import type { HeapGraph } from "./heap_graph.js";
import { type CutTree, cutTree, TreeKind } from "./heap_tree.js";

const FIRST_OBJECT = 3;

/** Nodes of `types` types (two of them of one name) that weigh their number; edges as pairs. */
function typedGraphOf(nodes: number, edges: readonly Edge[], types = 4): HeapGraph {
  return {
    ...graphOf(nodes, edges),
    firstObject: FIRST_OBJECT,
    address: Float64Array.from({ length: nodes }, (_, n) => 4096 + n * 16),
    type: Uint32Array.from({ length: nodes }, (_, n) => n % types),
    shallow: Float64Array.from({ length: nodes }, (_, n) => (n < FIRST_OBJECT ? 0 : n)),
    typeNames: Array.from({ length: types }, (_, type) => `type ${type % 3}`),
  };
}

const sum = (values: Iterable<number>) => [...values].reduce((a, b) => a + b, 0);

/** Bytes of a row without those of the rows below it. */
function ownOf(cut: CutTree): Float64Array {
  const own = cut.retained.slice();
  for (let row = 1; row < cut.rows; row++) {
    own[uint32At(cut.parent, row)] =
      float64At(own, uint32At(cut.parent, row)) - float64At(cut.retained, row);
  }
  return own;
}

describe("cutting a dominator tree", () => {
  test("cutting preserves the sums of rows, types, bytes and objects", () => {
    const random = wholeNumbersFrom(11);
    for (let round = 0; round < 200; round++) {
      const nodes = FIRST_OBJECT + 1 + random(120);
      const edges = [
        [0, 1],
        [0, 2],
        ...Array.from({ length: random(nodes * 2) }, () => [random(nodes), random(nodes)]),
      ] as [number, number][];
      const graph = typedGraphOf(nodes, edges);
      const tree = findDominators(graph);
      const bounds = {
        nodes: random(30),
        levels: 1 + random(8),
        share: random(3) / 4,
        groups: random(10),
        places: 999,
      };
      const cut = cutTree(graph, tree, bounds);
      const reached = [...tree.order].filter((node) => node >= FIRST_OBJECT);
      expect(cut.retained[0]).toBe(sum(reached.map((node) => float64At(graph.shallow, node))));
      expect(cut.objects[0]).toBe(tree.order.length);
      expect([...cut.kind].filter((kind) => kind === TreeKind.object).length).toBeLessThanOrEqual(
        bounds.nodes,
      );
      ownOf(cut).forEach((own, row) => {
        // The bytes of a one-object row without the rows below it are those of the object itself.
        if (uint8At(cut.kind, row) <= TreeKind.root) {
          expect(own).toBe(float64At(cut.shallow, row));
        }
        if (row > 0) {
          expect(cut.parent[row]).toBeLessThan(row);
        }
      });
      const { start, row, objects, bytes } = cut.places;
      cut.typeNames.forEach((name, type) => {
        const places = Array.from(
          { length: uint32At(start, type + 1) - uint32At(start, type) },
          (_, n) => {
            return uint32At(start, type) + n;
          },
        );
        const own = reached.filter((node) => graph.typeNames[uint32At(graph.type, node)] === name);
        expect(sum(places.map((place) => float64At(objects, place)))).toBe(own.length);
        expect(sum(places.map((place) => float64At(bytes, place)))).toBe(
          sum(own.map((node) => float64At(graph.shallow, node))),
        );
        expect(new Set(places.map((place) => uint32At(row, place))).size).toBe(places.length);
      });
    }
  });

  test("a long chain leaves rows for its siblings", () => {
    const chain = 5_000;
    const wide = 60;
    const last = FIRST_OBJECT + chain;
    const edges = [
      [0, 1],
      [1, FIRST_OBJECT],
      ...Array.from({ length: chain - 1 }, (_, n) => [FIRST_OBJECT + n, FIRST_OBJECT + n + 1]),
      ...Array.from({ length: wide }, (_, n) => [1, last + n]),
    ] as [number, number][];
    const graph = typedGraphOf(last + wide, edges);
    const cut = cutTree(graph, findDominators(graph), {
      nodes: 100,
      levels: 20,
      share: 0.001,
      groups: 100,
      places: 5,
    });
    for (let n = 0; n < wide; n++) {
      expect(cut.node).toContain(last + n);
    }
    const rest = cut.kind.indexOf(TreeKind.together);
    expect(cut.count[rest]).toBe(1);
    expect(cut.objects[rest]).toBeGreaterThan(chain - 40);
  });

  test("of many similar objects in one container none has its own row", () => {
    const many = 3_000;
    const edges = [
      [0, 1],
      [1, FIRST_OBJECT],
      ...Array.from({ length: many }, (_, n) => [FIRST_OBJECT, FIRST_OBJECT + 1 + n]),
    ] as [number, number][];
    const graph = typedGraphOf(FIRST_OBJECT + 1 + many, edges, 1);
    graph.shallow.fill(32);
    const cut = cutTree(graph, findDominators(graph));
    expect([...cut.kind]).toEqual([
      TreeKind.root,
      TreeKind.root,
      TreeKind.object,
      TreeKind.together,
    ]);
    expect(cut.count[3]).toBe(many);
    expect(cut.retained[3]).toBe(many * 32);
  });
});
