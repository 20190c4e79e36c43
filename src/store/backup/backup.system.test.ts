/** A backup of what may lie in a data folder can be restored. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { backUp, openStore, restore, StreamFiles } from "../index.js";

it("restores artifacts without the odd files in their folders, and requests", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-backup-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const source = join(folder, "data");
  const { store } = await openStore(`duckdb:${source}`);
  const artifact = join(source, "artifacts", "checkout-42");
  mkdirSync(join(artifact, "more"), { recursive: true });
  for (const name of ["about.json", "heap-42.json", "odd name.txt", ".hidden", "more/deep.txt"]) {
    writeFileSync(join(artifact, name), "{}");
  }
  symlinkSync("/etc", join(artifact, "link"));
  writeFileSync(join(source, "artifacts", "stray"), "");
  writeFileSync(join(source, "requests.json"), "[]");
  const files = new StreamFiles(join(source, "streams"));
  await backUp({ store, files, source }, join(folder, "copy"));
  await store.close();
  await restore(join(folder, "copy"), join(folder, "again"));
  expect(readdirSync(join(folder, "again/artifacts"))).toEqual(["checkout-42"]);
  expect(readdirSync(join(folder, "again/artifacts/checkout-42")).sort()).toEqual([
    "about.json",
    "heap-42.json",
  ]);
  expect(readdirSync(join(folder, "again"))).toContain("requests.json");
});
