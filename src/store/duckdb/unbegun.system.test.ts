/** A file of a day that DuckDB did not finish creating, because the disk was full, is created again; damage is not removed. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStore } from "../index.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-unbegun-"));
  mkdirSync(join(folder, "days"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const file = () => join(folder, "days", "2026-03-01.duckdb");
const open = () => openStore(`duckdb:${folder}`);

test.each([0, 100, 4_096, 8_192, 12_288])("%i bytes without content", async (bytes) => {
  writeFileSync(file(), Buffer.alloc(bytes));
  const { store } = await open();
  await store.close();
  expect(readFileSync(file()).toString("latin1", 8, 12)).toBe("DUCK");
});

test("a file that is damaged, and one with a log, are refused and kept", async () => {
  for (const [bytes, log] of [
    [100_000, 0],
    [4_096, 50],
  ] as const) {
    writeFileSync(file(), Buffer.alloc(bytes));
    writeFileSync(`${file()}.wal`, Buffer.alloc(log));
    await expect(open()).rejects.toThrow(/TM-E004|not a valid DuckDB/);
    expect(readFileSync(file())).toEqual(Buffer.alloc(bytes));
  }
});
