import { expect, test } from "vitest";
import { HolderReader } from "./holder_reader.js";

const NOTHING = { path: [], type: "", retainedBytes: 0, entries: 0, bound: 0, putters: [] };
const row = (fields: object) => ({
  ...{ site: "1 python tick app.py", madeAt: null, looked: 40, held: 0, garbage: 0, graph: 0 },
  ...NOTHING,
  ...fields,
});

function merged(...rows: readonly object[]) {
  const reader = new HolderReader();
  rows.forEach((one, n) => {
    reader.add({ pid: 1, collector: null, rows: [one] }, 1000 * (n + 1));
  });
  return reader.newest()[0]?.rows[0];
}

test("a lookup that finds nothing does not refute an earlier holder", () => {
  const found = row({ held: 39, unreferenced: 0, path: ["module app", "frame"], type: "list" });
  const missed = row({ unreferenced: 40 });
  expect(merged(found, missed)).toMatchObject({ held: 39, path: ["module app", "frame"] });
  expect(merged(missed, found)).toMatchObject({ held: 39, path: ["module app", "frame"] });
});

test("memory is unreferenced only if every lookup finds so; older recordings do not say", () => {
  expect(merged(row({ unreferenced: 4 }), row({ unreferenced: 38 }))?.unreferenced).toBe(4);
  expect(merged(row({ unreferenced: 38 }), row({ unreferenced: 40 }))?.unreferenced).toBe(38);
  expect(merged(row({}), row({}))?.unreferenced).toBeUndefined();
  expect(() => merged(row({ unreferenced: "all" }))).toThrow(/a holder's figure/);
});
