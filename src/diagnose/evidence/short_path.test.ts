import { expect, test } from "vitest";
import { shortPath } from "./short_path.js";

test("a path without a chain stays as it is", () => {
  const path = ["module app", "cache", "dict[...]", ".rows", ".rows"];
  expect(shortPath(path)).toEqual(path);
  expect(shortPath([])).toEqual([]);
});

test("a linked list is one step and a count", () => {
  const list = ["module app", "head", ...Array.from({ length: 1203 }, () => ".next"), ".value"];
  expect(shortPath(list)).toEqual(["module app", "head", ".next × 1,203", ".value"]);
});

test("links of several steps, and several chains", () => {
  const link = [".next", "dict[...]"];
  const path = ["module app", ...link, ...link, ...link, ...link, "a", "a", "a"];
  expect(shortPath(path)).toEqual(["module app", ".next → dict[...] × 4", "a × 3"]);
});

test("a long path without a chain keeps its ends", () => {
  const path = Array.from({ length: 100 }, (_, i) => `step ${i}`);
  const short = shortPath(path);
  expect(short).toHaveLength(24);
  expect([short[0], short[12], short.at(-1)]).toEqual(["step 0", "… 77 steps …", "step 99"]);
});
