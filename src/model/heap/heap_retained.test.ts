import { expect, test } from "vitest";
import { findDominators } from "./heap_dominators.js";
import { retainedByGroup } from "./heap_retained.js";

test("an object under another of its own group counts once", () => {
  // 0 -> 1 -> 2 -> 3, 1 -> 4 and 0 -> 5 -> 4: all weigh 10; groups: 1 and 3 "a", the others "b".
  const tree = findDominators({
    nodes: 6,
    firstObject: 1,
    address: new Float64Array(6),
    type: new Uint32Array(6),
    shallow: new Float64Array(6).fill(10),
    edgeStart: Uint32Array.of(0, 2, 4, 5, 5, 5, 6),
    edgeTo: Uint32Array.of(1, 5, 2, 4, 3, 4),
    typeNames: [],
  });
  const graph = { nodes: 6, firstObject: 1 } as Parameters<typeof retainedByGroup>[0];
  const [a, b] = retainedByGroup(graph, tree, Uint32Array.of(1, 0, 1, 0, 1, 1), 2);
  expect(a).toBe(30); // 1 retains 2 and 3; 4 has another way
  expect(b).toBe(20 + 10 + 10); // 2 with 3, then 4 and 5
});
