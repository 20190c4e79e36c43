import { expect, it } from "vitest";
import { applyFixes } from "./apply_fixes.js";

const fix = (...edits: [start: number, end: number, text: string][]) => ({
  description: "",
  edits: edits.map(([start, end, text]) => ({ start, end, text })),
});

it("applies fixes from the end, so that offsets stay valid", () => {
  expect(applyFixes("a b c", [fix([0, 1, "one"]), fix([4, 5, "three"])])).toEqual({
    text: "one b three",
    applied: 2,
  });
});

it("leaves out a fix that overlaps an earlier one, as a whole", () => {
  expect(applyFixes("abcdef", [fix([0, 3, "x"]), fix([2, 4, "y"], [5, 6, "z"])])).toEqual({
    text: "xdef",
    applied: 1,
  });
  expect(applyFixes("ab", [fix([1, 1, "1"]), fix([1, 1, "2"])])).toEqual({
    text: "a1b",
    applied: 1,
  });
});
