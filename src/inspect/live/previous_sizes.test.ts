import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { processKey, readPreviousSizes, writePreviousSizes } from "./previous_sizes.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-sizes-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("remembers sizes by process, and makes its folder", () => {
  const path = join(folder, "cache", "tidemark", "ps.json");
  const snapshot = { timeMs: 5, sizes: new Map([[processKey(7, 99), 1024]]) };
  expect(readPreviousSizes(path)).toBeNull();
  writePreviousSizes(snapshot, path);
  expect(readPreviousSizes(path)).toEqual(snapshot);
});

it.each(["", "{", "null", "[]", '{"timeMs":"x","sizes":{}}', '{"timeMs":1,"sizes":null}'])(
  "treats garbage as no previous reading: %s",
  (text) => {
    const path = join(folder, "ps.json");
    writeFileSync(path, text);
    expect(readPreviousSizes(path)).toBeNull();
  },
);

it("survives an unwritable folder", () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  expect(() =>
    writePreviousSizes({ timeMs: 1, sizes: new Map() }, join(file, "ps.json")),
  ).not.toThrow();
});
