import { describe, expect, test } from "vitest";
import { float64At, uint8At, uint32At } from "../base/columns.js";
import { wholeNumbersFrom } from "../base/random.fixture.js";
import { findDominators } from "./heap_dominators.js";
import { graphOf, randomEdges } from "./heap_graph.fixture.js";
import type { HeapGraph } from "./heap_graph.js";

function reachable({ nodes, edgeStart, edgeTo }: HeapGraph, without: number): Uint8Array {
  const seen = new Uint8Array(nodes);
  const stack = without === 0 ? [] : [0];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (uint8At(seen, n)) {
      continue;
    }
    seen[n] = 1;
    for (let e = uint32At(edgeStart, n); e < uint32At(edgeStart, n + 1); e++) {
      if (edgeTo[e] !== without && !seen[uint32At(edgeTo, e)]) {
        stack.push(uint32At(edgeTo, e));
      }
    }
  }
  return seen;
}

/** Retained size by its definition: what cannot be reached any more without the node. */
function retainedByDefinition(graph: HeapGraph, node: number): number {
  const before = reachable(graph, -1);
  const after = reachable(graph, node);
  let sum = 0;
  for (let n = 0; n < graph.nodes; n++) {
    if (before[n] && !after[n]) {
      sum += float64At(graph.shallow, n);
    }
  }
  return sum;
}

describe("dominators", () => {
  test("retained sizes are what would be freed, on random graphs of every density", () => {
    const random = wholeNumbersFrom(7);
    for (let round = 0; round < 300; round++) {
      const nodes = 1 + random(40);
      const edges = randomEdges(nodes, 1 + (round % 5), random);
      const graph = graphOf(nodes, edges);
      const tree = findDominators(graph);
      const reached = reachable(graph, -1);
      for (let n = 0; n < nodes; n++) {
        expect(tree.reached[n]).toBe(uint8At(reached, n));
        const retained = reached[n] ? retainedByDefinition(graph, n) : 0;
        expect(tree.retained[n]).toBe(retained);
        expect(tree.retainedBytes(n)).toBe(retained);
        expect(tree.retainedObjects(n)).toBe(tree.retainedNodes[n]);
      }
    }
  });

  test("an object with one referrer is dominated by it, one with two by what precedes both", () => {
    // 0 -> 1 -> {2, 3}, 2 -> 4, 3 -> {5, 5}, {2, 3} -> 6; nothing leads to 7, which refers to 8.
    const edges = [
      [0, 1],
      [1, 2],
      [1, 3],
      [2, 4],
      [3, 5],
      [3, 5],
      [2, 6],
      [3, 6],
      [7, 8],
    ] as const;
    const tree = findDominators(graphOf(9, edges));
    expect([...tree.dominator]).toEqual([0, 0, 1, 1, 2, 3, 1, 0, 0]);
    expect([...tree.reached]).toEqual([1, 1, 1, 1, 1, 1, 1, 0, 0]);
    expect([...tree.retainedNodes]).toEqual([7, 6, 2, 2, 1, 1, 1, 0, 0]);
    expect([...tree.order].sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test("a million objects in one chain, and graphs that are hard for iterative schemes", () => {
    const deep = 1_000_000;
    const chain = Array.from({ length: deep - 1 }, (_, n) => [n, n + 1] as const);
    const tree = findDominators(graphOf(deep, chain));
    expect(tree.dominator[deep - 1]).toBe(deep - 2);
    expect(tree.retained[0]).toBe((deep * (deep + 1)) / 2);

    // A ladder with edges back from each rung to all the earlier spans: everything hangs off the root.
    const ladder = 200_000;
    const back = Array.from({ length: ladder - 2 }, (_, n) => [n + 2, n + 1] as const);
    const ends = Array.from({ length: ladder - 1 }, (_, n) => [0, n + 1] as const);
    const hostile = findDominators(
      graphOf(ladder, [...chain.slice(0, ladder - 1), ...back, ...ends]),
    );
    expect(hostile.dominator.every((above) => above === 0)).toBe(true);
  });
});
