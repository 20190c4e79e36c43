import { expect, test } from "vitest";
import { choose } from "./chosen_samples.js";

const second = (bornMs: number) => ({ address: bornMs, bytes: 100, bornMs });
/** One sample a second, from 0 to 60 s. */
const rows = (until: number) => Array.from({ length: until }, (_, s) => second(s * 1000));

test("what may be freed while the heap is copied is left out, if there is anything else", () => {
  expect(Math.max(...choose(rows(12), 4_000, 12_000))).toBe(9_000);
  expect(Math.max(...choose(rows(60), 20_000, 60_000))).toBe(53_000);
  expect(choose([second(11_500)], 4_000, 12_000)).toEqual([11_500]);
});

test("what is older than the last two thirds of the window belongs to the start", () => {
  expect(Math.min(...choose(rows(60), 20_000, 60_000))).toBe(20_000);
});
