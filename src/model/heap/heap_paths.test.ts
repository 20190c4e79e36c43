import { expect, test } from "vitest";
import { pathTo, searchPaths } from "./heap_paths.js";

/** Roots 1 and 2, under 0; each leads to an object, and 5 is a text that one or both of the objects have. */
function pathsTo(edgeOf: number | null, onlyReferrer: number): number[] {
  const edges = [[1, 2], [3], [4], ...[3, 4].map((node) => (node === edgeOf ? [5] : [])), []];
  const edgeTo = Uint32Array.from(edges.flat());
  const graph = {
    nodes: 6,
    firstObject: 3,
    address: new Float64Array(6),
    type: new Uint32Array(6),
    shallow: new Float64Array(6),
    edgeStart: Uint32Array.from({ length: 7 }, (_, n) => edges.slice(0, n).flat().length),
    edgeTo,
    onlyReferrer: Uint32Array.of(0, 0, 0, 0, 0, onlyReferrer),
    typeNames: [],
  };
  return pathTo(searchPaths(graph, [1, 2]), 5);
}

test("a path leads to an object through its only referrer", () => {
  expect(pathsTo(null, 3)).toEqual([1, 3, 5]);
  expect(pathsTo(null, 4)).toEqual([2, 4, 5]);
});

test("a path to an object that got another referrer meanwhile begins at the earlier root", () => {
  expect(pathsTo(4, 3)).toEqual([1, 3, 5]);
  expect(pathsTo(3, 4)).toEqual([1, 3, 5]);
});
