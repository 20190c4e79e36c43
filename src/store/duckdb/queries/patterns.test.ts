import { expect, test } from "vitest";
import { batchesOf, expandedSize } from "./patterns.js";

test.each([
  ["", 0],
  ["web-.*", 6],
  ["a{3}", 3],
  ["a{2,}", 3],
  ["a{,3}", 5],
  ["[a-z]{4}", 4],
  ["[]{9}]", 1],
  ["\\{9}", 3],
  ["(ab){10}", 30],
  ["(?:(?:a{10}){10}){10}", 1000],
  ["(.*a.*){900}", 5400],
  ["((a{1000}){1000}){1000}", 1e9],
  ["(((", 3],
  [")))", 3],
  ["\\p{Greek}{3}x", 301],
  ["\\pLx", 101],
  ["[a\\pL]{2}", 200],
])("%s", (pattern, least) => {
  const size = expandedSize(pattern);
  expect(size).toBeGreaterThanOrEqual(least);
  expect(size).toBeLessThanOrEqual(least * 1.7 + 4);
});

test("values are divided into batches, and none is left out", () => {
  expect(batchesOf([], 10)).toEqual([[]]);
  expect(batchesOf(["aaaa", "bbbb", "c", "long long long", "d"], 10)).toEqual([
    ["aaaa", "bbbb"],
    ["c"],
    ["long long long"],
    ["d"],
  ]);
});
