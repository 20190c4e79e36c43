/** Recordings on disk are bounded by age and bytes, and a service's name cannot lead out of their folder. */
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readStat } from "../../linux/index.js";
import { present } from "../../model/base/present.js";
import { KeptRecordings } from "./kept_recordings.js";

const NOW = Date.UTC(2026, 10, 25, 12);
let folder: string;
let kept: KeptRecordings;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-test-"));
  kept = new KeptRecordings(folder);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The files of the folder, without the lock of the collector. */
function files(): string[] {
  return readdirSync(folder).filter((name) => name !== "watch.lock");
}

/** A recording of 100 bytes that is so many hours old. */
function recording(service: string, hours: number): string {
  const path = kept.newPath(service, 7, NOW);
  writeFileSync(path, Buffer.alloc(100));
  utimesSync(path, NOW / 1000, NOW / 1000 - hours * 3600);
  return path;
}

test("old recordings go first, then the oldest while there are too many bytes; open ones stay", () => {
  const paths = [30, 20, 10, 5].map((hours) => recording(`s${hours}`, hours));
  kept.closed(paths[0] as string);
  kept.closed(paths[1] as string);
  kept.closed(paths[3] as string);
  writeFileSync(join(folder, "notes.txt"), "mine");
  const day = { keepMs: 24 * 3_600_000, mostBytes: 1000 };
  expect(kept.tidy(day, NOW)).toBe(1);
  expect(kept.tidy({ ...day, mostBytes: 150 }, NOW)).toBe(2);
  const left = files().sort();
  expect(left).toHaveLength(2);
  expect(left).toContain("notes.txt");
  expect(left.find((name) => name.startsWith("s10-"))).toBeDefined();
});

test("a folder that someone removed has nothing to remove, and is created again", async () => {
  rmSync(folder, { recursive: true });
  expect(kept.tidy({ keepMs: 0, mostBytes: 0 }, NOW)).toBe(0);
  await kept.prepare();
  expect(files()).toEqual([]);
});

test("a recording of an earlier collector in the same folder is not overwritten", () => {
  const path = recording("shop", 0);
  expect(new KeptRecordings(folder).newPath("shop", 7, NOW)).not.toBe(path);
});

test("a folder that a living collector uses is refused, and free again when that one has closed", () => {
  writeFileSync(join(folder, "watch.lock"), `1 ${present(readStat(1)).startTicks}\n`);
  expect(() => new KeptRecordings(folder)).toThrow(/process 1 already keeps its recordings/);
  for (const left of ["1 5\n", "", "x", "-1 0", "99999999 1"]) {
    writeFileSync(join(folder, "watch.lock"), left);
    new KeptRecordings(folder).close();
    expect(files()).toEqual([]);
  }
});

test.each(["../../../etc/passwd", "..", "/abs", "", "a/b", "line\nbreak", "x".repeat(500), "日本"])(
  "the service %j is a part of a file's name",
  (service) => {
    const path = kept.newPath(service, 7, NOW);
    expect(dirname(path)).toBe(folder);
    writeFileSync(path, "");
    expect(files()).toHaveLength(1);
  },
);

test("two recordings of one second have two files", () => {
  expect(kept.newPath("shop", 7, NOW)).not.toBe(kept.newPath("shop", 7, NOW));
});
