import { describe, expect, test } from "vitest";
import { uint32At } from "../../../src/model/base/columns.js";
import { layOut } from "./layout.js";
import { findMatches } from "./search.js";

/** root 10 > a 6 > (b 4 > a 3, c 2); root > c 4 */
const parent = Uint32Array.from([0, 0, 1, 2, 1, 0]);
const frame = Uint32Array.from([0, 0, 1, 0, 2, 2]);
const layout = layOut({ length: 6, parent }, Float64Array.from([10, 6, 4, 3, 2, 4]));
const find = (...frames: number[]) =>
  findMatches(
    layout,
    (position) => uint32At(frame, uint32At(layout.node, position)),
    Uint8Array.from([0, 1, 2], (one) => Number(frames.includes(one))),
  );

describe("findMatches", () => {
  test("nested matches count once", () => {
    const found = find(0);
    expect(found.nodes).toBe(2);
    expect(found.share).toBeCloseTo(0.6);
  });

  test("separate matches add up; without matches the share is zero", () => {
    expect(find(2).share).toBeCloseTo(0.6);
    expect(find()).toMatchObject({ nodes: 0, share: 0, first: -1 });
    expect(find().next(-1, 1)).toBe(-1);
  });

  test("steps forward and back through all matches, wrapping around", () => {
    const found = find(2);
    const first = found.next(-1, 1);
    const second = found.next(first, 1);
    expect(first).toBe(found.first);
    expect([first, second].map((at) => uint32At(layout.node, at))).toEqual([5, 4]);
    expect(found.next(second, 1)).toBe(first);
    expect(found.next(first, -1)).toBe(second);
    expect(found.next(second, -1)).toBe(first);
  });
});
