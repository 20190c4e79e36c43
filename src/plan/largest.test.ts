import { describe, expect, it } from "vitest";
import { largest } from "./largest.js";

const LIMIT = 5000;

/** Values up to `border` fit, except `holes`. */
function found(border: number, holes: readonly number[] = [], isRow = false): number {
  return largest(LIMIT, {
    fits: (value) => value <= border && !holes.includes(value),
    shareOf: (value) => 0.5 + (0.46 * value) / border,
    isRow,
  });
}

describe("largest", () => {
  it.each([0, 1, 2, 3, 17, 64, 999, LIMIT])("finds a border at %d", (border) => {
    expect(found(Math.max(border, 0.5))).toBe(border);
  });

  it.each([
    [40, [39], 38],
    [40, [30, 36], 29],
    [40, [1], 0],
    [60, [20], 60],
  ])("of %d, with %j that do not fit, is %d", (border, holes, expected) => {
    // Below 85 % of the border's share gaps do not decide: 20 of 60 is not tried.
    expect(found(border, holes)).toBe(expected);
  });

  it("names a number that fits beyond one that does not", () => {
    const beyond: number[] = [];
    const most = largest(LIMIT, {
      fits: (value) => value <= 40 && value !== 39,
      shareOf: (value) => 0.5 + (0.46 * value) / 40,
      isRow: false,
      onHole: (value) => void beyond.push(value),
    });
    expect([most, beyond]).toEqual([38, [40]]);
  });

  it("rounds a row of a table down to a number of few bits that fits", () => {
    for (const border of [5, 31, 63, 100, 777, 4000]) {
      const row = found(border, [], true);
      expect(row).toBeLessThanOrEqual(border);
      expect(row).toBeGreaterThan(border * 0.96 - 1);
    }
  });
});
