import { expect, test } from "vitest";
import { shownLabels } from "./Histogram.js";

const bars = (...labels: string[]) => labels.map((label) => ({ label }));

test("labels that are equal after rounding are shown once", () => {
  expect(shownLabels(bars("+0.1 s", "+0.1 s", "+0.2 s"))).toEqual(["+0.1 s", "", "+0.2 s"]);
});

test("labels about eight of many bars, and the last", () => {
  const many = shownLabels(bars(...Array.from({ length: 40 }, (_, bar) => `+${bar} s`)));
  expect(many.filter((label) => label !== "")).toHaveLength(9);
  expect(many.at(-1)).toBe("+39 s");
  expect(shownLabels([])).toEqual([]);
});
