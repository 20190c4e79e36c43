import { describe, expect, test } from "vitest";
import { uint32At } from "../base/columns.js";
import { wholeNumbersFrom } from "../base/random.fixture.js";
import { findDominators } from "./heap_dominators.js";
import { type Edge, graphOf, randomEdges } from "./heap_graph.fixture.js";
import type { HeapGraph } from "./heap_graph.js";
import { searchPaths } from "./heap_paths.js";
import { Retention } from "./heap_retention.js";

/** The same graph; the only reference to a node that refers to nothing is no edge. */
function withoutSingles(nodes: number, edges: readonly Edge[]): HeapGraph {
  const isSingle = ([, to]: Edge) =>
    to !== 0 &&
    edges.filter((edge) => edge[1] === to).length === 1 &&
    edges.every(([from]) => from !== to);
  const onlyReferrer = new Uint32Array(nodes);
  const left = edges.filter((edge) => edge[0] === 0 || !isSingle(edge));
  for (const [from, to] of edges.filter((edge) => edge[0] !== 0 && isSingle(edge))) {
    onlyReferrer[to] = from;
  }
  return { ...graphOf(nodes, left), onlyReferrer };
}

function retentionOf(graph: HeapGraph, makeTree = () => findDominators(graph)): Retention {
  const paths = searchPaths(graph, [0]);
  const edges = new Uint32Array(graph.nodes);
  for (let node = 0; node < graph.nodes; node++) {
    const end = paths.reached[node] === 0 ? 0 : uint32At(graph.edgeStart, node + 1);
    for (let edge = uint32At(graph.edgeStart, node); edge < end; edge++) {
      const to = uint32At(graph.edgeTo, edge);
      edges[to] = uint32At(edges, to) + 1;
    }
  }
  return new Retention(graph, paths, edges, makeTree);
}

const unasked = () => {
  throw new Error("the dominators were computed");
};

describe("retention", () => {
  test("single nodes retain what the dominators of the whole graph show, on random graphs", () => {
    const random = wholeNumbersFrom(11);
    for (let round = 0; round < 300; round++) {
      const nodes = 2 + random(30);
      const edges = randomEdges(nodes, 1 + (round % 5), random);
      const tree = findDominators(graphOf(nodes, edges));
      for (const graph of [graphOf(nodes, edges), withoutSingles(nodes, edges)]) {
        const same = findDominators(graph);
        for (let n = 1; n < nodes; n++) {
          if (tree.reached[n] === 1) {
            // Each is asked alone, so that none is answered by the dominators.
            const retention = retentionOf(graph, unasked);
            const wanted = [tree.retainedBytes(n), tree.retainedObjects(n)];
            expect([same.retainedBytes(n), same.retainedObjects(n)]).toEqual(wanted);
            expect([retention.retainedBytes(n), retention.retainedObjects(n)]).toEqual(wanted);
            for (let other = 1; other < nodes; other++) {
              if (tree.reached[other] === 1) {
                expect(retention.dominates(n, other)).toBe(tree.dominates(n, other));
              }
            }
          }
        }
      }
    }
  });

  test("after many questions, the dominators answer", () => {
    const chain = Array.from({ length: 99 }, (_, n) => [n, n + 1] as const);
    const graph = graphOf(100, chain);
    let made = 0;
    const retention = retentionOf(graph, () => {
      made += 1;
      return findDominators(graph);
    });
    for (let n = 1; n < 100; n++) {
      expect(retention.retainedObjects(n)).toBe(100 - n);
    }
    expect(made).toBe(1);
    expect(retention.dominator[99]).toBe(98);
  });
});
