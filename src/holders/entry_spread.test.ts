import { expect, it } from "vitest";
import type { NodeId } from "../model/heap/heap_graph.js";
import type { PathTree } from "../model/heap/heap_paths.js";
import { entrySpread } from "./entry_spread.js";

const HOLDER = 2;
const ENTRIES = 8;
const OBJECTS = 48;
const FIRST_OBJECT = 20;

/** root 1 -> holder 2 -> entries 10 to 17 -> objects from 20 on, the oldest first. */
function treeOf(entryOf: (object: number) => number): { paths: PathTree; nodes: NodeId[] } {
  const before = new Uint32Array(FIRST_OBJECT + OBJECTS);
  before[HOLDER] = 1;
  for (let entry = 0; entry < ENTRIES; entry++) {
    before[10 + entry] = HOLDER;
  }
  const nodes = Array.from({ length: OBJECTS }, (_, n) => FIRST_OBJECT + n);
  nodes.forEach((node, n) => {
    before[node] = 10 + entryOf(n);
  });
  return { paths: { before, reached: new Uint8Array(before.length).fill(1), roots: [1] }, nodes };
}

const spread = (entryOf: (object: number) => number) => {
  const { paths, nodes } = treeOf(entryOf);
  return entrySpread(paths, HOLDER, nodes);
};

it("is about 1 if each entry gains objects all the time, and small if entries come one after another", () => {
  expect(spread((n) => (n * 5) % ENTRIES)).toBeCloseTo(1, 0);
  expect(spread((n) => Math.floor(n / (OBJECTS / ENTRIES)))).toBeLessThan(0.2);
});

it("is unknown without several objects in the same entry, or if the objects are the entries", () => {
  const { paths, nodes } = treeOf((n) => n % ENTRIES);
  expect(entrySpread(paths, HOLDER, nodes.slice(0, ENTRIES))).toBeNull();
  expect(entrySpread(paths, 10, nodes)).toBeNull();
});
