import { describe, expect, test } from "vitest";
import { float64At, uint32At } from "../../../src/model/base/columns.js";
import {
  type FlameLayout,
  firstEndingAfter,
  HIDDEN,
  layOut,
  positionAt,
  rowOf,
  visitRow,
} from "./layout.js";

/** root 10: a 6 (a1 1, a2 4), b 0, c 4 */
const parent = Uint32Array.from([0, 0, 0, 0, 1, 1]);
const width = Float64Array.from([10, 6, 0, 4, 1, 4]);
const layout = layOut({ length: 6, parent }, width);

describe("layOut", () => {
  test("puts the widest sibling first and omits nodes without width", () => {
    expect([...layout.node]).toEqual([0, 1, 3, 5, 4]);
    expect([...layout.start]).toEqual([0, 0, 6, 0, 4]);
    expect([...layout.end]).toEqual([10, 6, 10, 4, 5]);
    expect([...layout.rowStart]).toEqual([0, 1, 3, 5]);
    expect(layout.position[2]).toBe(HIDDEN);
    expect([...layout.parent]).toEqual([0, 0, 0, 1, 1]);
  });

  test("a tree of width zero has no rows", () => {
    expect(layOut({ length: 6, parent }, new Float64Array(6)).rows).toBe(0);
    expect(layOut({ length: 0, parent: new Uint32Array(0) }, new Float64Array(0)).rows).toBe(0);
  });

  test("children never extend beyond their parent, despite rounding", () => {
    const many = 1000;
    const widths = new Float64Array(many + 1).fill(0.1);
    widths[0] = 99.99999;
    const wide = layOut({ length: many + 1, parent: new Uint32Array(many + 1) }, widths);
    for (let at = 2; at <= many; at++) {
      expect(wide.start[at]).toBeGreaterThanOrEqual(float64At(wide.end, at - 1));
      expect(wide.end[at]).toBeLessThanOrEqual(float64At(wide.end, 0));
    }
  });
});

describe("finding", () => {
  test("positionAt finds rectangles, and nothing between them", () => {
    expect(layout.node[positionAt(layout, 1, 5.9)]).toBe(1);
    expect(layout.node[positionAt(layout, 1, 6)]).toBe(3);
    expect(positionAt(layout, 2, 5.5)).toBe(-1);
    expect(positionAt(layout, 1, 10)).toBe(-1);
    expect(positionAt(layout, 3, 1)).toBe(-1);
    expect(positionAt(layout, -1, 1)).toBe(-1);
  });

  test("rowOf agrees with the rows for every position", () => {
    expect([0, 1, 2, 3, 4].map((at) => rowOf(layout, at))).toEqual([0, 1, 1, 2, 2]);
  });

  test("binary search finds what a scan finds, in random rows", () => {
    const { random, wide } = randomRow(5000);
    for (let i = 0; i < 500; i++) {
      const x = random() * float64At(wide.end, 0) * 1.02;
      let scanned = uint32At(wide.rowStart, 1);
      while (scanned < uint32At(wide.rowStart, 2) && float64At(wide.end, scanned) <= x) {
        scanned++;
      }
      expect(firstEndingAfter(wide, 1, x)).toBe(scanned);
    }
  });
});

describe("visitRow", () => {
  test("covers every rectangle in sight exactly once and never more than the pixels allow", () => {
    const { random, wide } = randomRow(20_000);
    for (let i = 0; i < 50; i++) {
      const start = random() * float64At(wide.end, 0);
      const end = start + random() * (float64At(wide.end, 0) - start);
      const pixels = 800;
      let expected = firstEndingAfter(wide, 1, start);
      let visits = 0;
      visitRow(wide, 1, { start, end, unitsPerPixel: (end - start) / pixels }, (from, to) => {
        expect(from).toBe(expected);
        expect(to).toBeGreaterThan(from);
        // What is melted together fits into one pixel.
        if (to > from + 1) {
          expect(float64At(wide.end, to - 1) - float64At(wide.start, from)).toBeLessThanOrEqual(
            (end - start) / pixels,
          );
        }
        expected = to;
        visits++;
      });
      expect(expected === wide.rowStart[2] || float64At(wide.start, expected) >= end).toBe(true);
      expect(visits).toBeLessThanOrEqual(2 * pixels + 2);
    }
  });
});

function randomRow(count: number): { random: () => number; wide: FlameLayout } {
  let state = 7;
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state / 2 ** 32;
  };
  const widths = Float64Array.from({ length: count + 1 }, () => random() ** 8 * 1000 + 0.001);
  widths[0] = widths.subarray(1).reduce((a, b) => a + b, 0);
  return {
    random,
    wide: layOut({ length: count + 1, parent: new Uint32Array(count + 1) }, widths),
  };
}
