import { expect, test } from "vitest";
import type { HolderRow } from "../recording/types.js";
import { informativeness, isConclusive, withNamedHolders } from "./lookup_quality.js";
import type { LookupSite } from "./lookup_request.js";

const swelling: LookupSite[] = [
  { site: "concat", python: false, addresses: [1], swelling: { least: 1, most: 2 } },
];
const kept: LookupSite[] = [{ site: "concat", python: true, addresses: [1], swelling: null }];

function held(...path: string[]): HolderRow[] {
  const counts = { looked: 1, held: 1, garbage: 0, graph: 0 };
  const holder = { path, type: "", retainedBytes: 0, entries: 0, bound: 0, putters: [] };
  return [{ site: "concat", madeAt: null, ...counts, ...holder }];
}

const named = held("module app", "df", "._mgr");
const nameless = [
  held("native memory", "pandas.core.internals.managers.BlockManager"),
  held("thread stacks", "numpy.ndarray"),
  held("thread MainThread", "frame concat (concat.py:9)", "tuple"),
  held(),
];

test("a block that is replaced by larger ones is looked up until a name leads to it", () => {
  expect(isConclusive(named, swelling)).toBe(true);
  for (const rows of nameless) {
    expect(isConclusive(rows, swelling)).toBe(false);
    expect(informativeness(named, swelling)).toBeGreaterThan(informativeness(rows, swelling));
    expect(withNamedHolders(rows, swelling)[0]?.path).toEqual([]);
  }
  expect(withNamedHolders(named, swelling)).toEqual(named);
});

test("objects that stay may be held by C code, or by several containers", () => {
  const [native = []] = nameless;
  expect(withNamedHolders(native, kept)).toEqual(native);
  expect(isConclusive(held(), kept)).toBe(true);
});
