import { expect, test } from "vitest";
import { runsOf } from "./sourceLines.js";

const some = { python: 1, native: 0, copied: 0 };

test("lines far from every allocation are folded, short gaps are not", () => {
  expect(runsOf(100, new Map([[50, some]]))).toEqual([
    { first: 1, last: 43, folded: true },
    { first: 44, last: 56, folded: false },
    { first: 57, last: 100, folded: true },
  ]);
  expect(runsOf(9, new Map([[1, some]])).map(({ folded }) => folded)).toEqual([false, false]);
  expect(runsOf(0, new Map())).toEqual([]);
});

test("a line beyond the end of a file that became shorter does not count", () => {
  expect(runsOf(10, new Map([[500, some]]))).toEqual([{ first: 1, last: 10, folded: true }]);
});
