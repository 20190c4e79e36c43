import { expect, test } from "vitest";
import { nextVerdictAt } from "./verdicts.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test("a young recording is diagnosed often, and one of weeks still once an hour", () => {
  expect(nextVerdictAt(0)).toBe(20_000);
  expect(nextVerdictAt(20_000)).toBe(30_000);
  expect(nextVerdictAt(10 * MINUTE)).toBe(15 * MINUTE);
  expect(nextVerdictAt(240 * HOUR)).toBe(241 * HOUR);
});
