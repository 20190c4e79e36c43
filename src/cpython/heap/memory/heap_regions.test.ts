import { expect, test } from "vitest";
import type { Mapping, Memory } from "../../../linux/memory/memory.js";
import { heapRegions } from "./heap_regions.js";

const MIB = 2 ** 20;

function mapping(start: number, end: number, inode: number): Mapping {
  const path = inode > 0 ? `/lib/lib${inode}.so` : "";
  const flags = { readable: true, writable: true, executable: false, shared: false };
  const file = { offset: 0, device: "fe:00", inode, path, deleted: false };
  return { start: start * MIB, end: end * MIB, ...flags, ...file };
}

function regionsIn(...mappings: Mapping[]) {
  const regions = heapRegions({ mappings } as unknown as Memory);
  return regions.map(({ start, end }) => [start / MIB, end / MIB]);
}

test("adjacent anonymous mappings are one region", () => {
  expect(regionsIn(mapping(0, 1, 0), mapping(1, 3, 0), mapping(5, 6, 0))).toEqual([
    [0, 3],
    [5, 6],
  ]);
});

test("large variables in the middle of a library are not a region", () => {
  expect(regionsIn(mapping(0, 1, 7), mapping(1, 40, 0), mapping(40, 41, 7))).toEqual([]);
});

test("memory behind a library's last mapping is a region, because other memory may have joined it", () => {
  expect(regionsIn(mapping(0, 1, 7), mapping(1, 40, 0))).toEqual([[1, 40]]);
  expect(regionsIn(mapping(0, 1, 7), mapping(1, 40, 0), mapping(40, 41, 8))).toEqual([[1, 40]]);
  expect(regionsIn(mapping(0, 1, 7), mapping(1, 40, 0), mapping(41, 42, 7))).toEqual([[1, 40]]);
});

test("small variables in the middle of a library are a region, because they may contain types", () => {
  expect(regionsIn(mapping(0, 1, 7), mapping(1, 2, 0), mapping(2, 3, 7))).toEqual([[1, 2]]);
});
