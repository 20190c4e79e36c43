import { expect, test } from "vitest";
import { wholeNumbers } from "./columns.js";

test("whole numbers keep the sum, also of values that would each be rounded to 0", () => {
  const many = new Float64Array(1000).fill(0.3);
  const whole = wholeNumbers(many);
  expect(whole.reduce((sum, each) => sum + each, 0)).toBe(300);
  expect(new Set(whole)).toEqual(new Set([0, 1]));
  expect([...wholeNumbers(Float64Array.of(0.4, 10.4, 0, 3, 0.4))]).toEqual([0, 11, 0, 3, 0]);
});
