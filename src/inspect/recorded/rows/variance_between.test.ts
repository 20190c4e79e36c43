import { expect, test } from "vitest";
import { varianceBetween } from "./variance_between.js";

const earlier = { live: 100, variance: 900, allocated: 200, allocatedVariance: 1000 };

test("samples that are live at both moments add no error", () => {
  expect(varianceBetween(earlier, { ...earlier })).toBe(0);
  const later = { live: 150, variance: 1200, allocated: 250, allocatedVariance: 1300 };
  expect(varianceBetween(earlier, later)).toBe(300);
  expect(varianceBetween(later, earlier)).toBe(300);
});
