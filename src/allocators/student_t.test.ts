import { expect, test } from "vitest";
import { twoSidedT } from "./student_t.js";

test("quantiles agree with published tables", () => {
  // Table of critical values, two-sided.
  const table: [level: number, freedom: number, t: number][] = [
    [0.95, 1, 12.706],
    [0.95, 2, 4.303],
    [0.95, 3, 3.182],
    [0.95, 4, 2.776],
    [0.99, 5, 4.032],
    [0.95, 10, 2.228],
    [0.999, 9, 4.781],
  ];
  for (const [level, freedom, t] of table) {
    expect(twoSidedT(level, freedom)).toBeCloseTo(t, 2);
  }
});
