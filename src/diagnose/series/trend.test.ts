import { describe, expect, test } from "vitest";
import { median, theilSen } from "./trend.js";

const steps = (count: number) => Array.from({ length: count }, (_, i) => i);

describe("Theil-Sen", () => {
  test("a line without noise", () => {
    const x = steps(50);
    expect(
      theilSen(
        x,
        x.map((at) => 7 + 3 * at),
      ),
    ).toEqual({ slope: 3, start: 7, low: 3, high: 3 });
  });

  test("a quarter of the points may be outliers", () => {
    const x = steps(400);
    const trend = theilSen(
      x,
      x.map((at) => (at % 4 === 0 ? 1e12 : 5 * at)),
    );
    expect(trend.slope).toBeCloseTo(5, 0);
  });

  test("noise without a trend shows no trend", () => {
    const x = steps(1000);
    const { slope } = theilSen(
      x,
      x.map((at) => 100 + Math.sin(at * 12.9898) * 10),
    );
    expect(Math.abs(slope)).toBeLessThan(0.01);
  });

  test("too few points, or all at one time: no slope", () => {
    expect(theilSen([], [])).toEqual({ slope: 0, start: 0, low: 0, high: 0 });
    expect(theilSen([1, 2], [10, 20])).toMatchObject({ slope: 0, start: 15 });
    expect(theilSen([4, 4, 4], [1, 2, 9])).toMatchObject({ slope: 0, start: 2 });
  });

  test("many points are thinned without changing the line", () => {
    const x = steps(100_000);
    expect(
      theilSen(
        x,
        x.map((at) => 2 * at + 1),
      ),
    ).toEqual({ slope: 2, start: 1, low: 2, high: 2 });
  });
});

test("median", () => {
  expect([median([]), median([3]), median([9, 1]), median([5, 1, 100])]).toEqual([0, 3, 5, 5]);
});
