import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { cached, cacheFolder } from "./cache.mjs";

/** @type {string} */
let home;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "tidemark-cache-"));
  vi.stubEnv("XDG_CACHE_HOME", home);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
});

/** @param {string} folder */
const make = async (folder) => writeFileSync(join(folder, "made"), folder);
const never = () => Promise.reject(new Error("asked again"));

test("creates a folder once, and again for different inputs", async () => {
  const first = await cached("thing", ["a"], make);
  expect(readFileSync(join(first, "made"), "utf8")).toBe(first);
  expect(await cached("thing", ["a"], never)).toBe(first);
  expect(await cached("thing", ["b"], make)).not.toBe(first);
});

test("a failure leaves nothing behind and is not cached", async () => {
  await expect(cached("thing", ["a"], never)).rejects.toThrow("asked again");
  expect(readdirSync(cacheFolder())).toEqual([]);
  expect(existsSync(join(await cached("thing", ["a"], make), "made"))).toBe(true);
});

test("the rest of a killed build is never used, and is removed", async () => {
  const place = await cached("thing", ["a"], make);
  const link = place.replace(/\.\d+$/, "");
  rmSync(link);
  const dead = `${link}.999999999`;
  mkdirSync(dead);
  const again = await cached("thing", ["a"], async (folder) => {
    writeFileSync(join(folder, "made"), "second");
  });
  expect(readFileSync(join(again, "made"), "utf8")).toBe("second");
  expect(existsSync(dead)).toBe(false);
});
