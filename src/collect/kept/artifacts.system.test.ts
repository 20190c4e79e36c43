/** Artifacts on disk are bounded by count, age and bytes, and nothing else in their folder is removed. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ArtifactJson } from "../../model/documents/artifact_document.js";
import { Artifacts } from "./artifacts.js";

const NOW = Date.UTC(2026, 10, 26, 12);
const HOUR = 3_600_000;
const WIDE = { count: 100, keepMs: 1000 * HOUR, mostBytes: 1e9 };
let folder: string;
let artifacts: Artifacts;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-test-"));
  artifacts = new Artifacts(folder);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const names = () => readdirSync(join(folder, "artifacts")).sort();

/** An artifact with a file of 10,000 bytes that is so many hours old. */
function artifact(service: string, hours: number): string {
  const timeMs = NOW - hours * HOUR;
  const path = artifacts.begin(aboutOf(service, timeMs, []));
  writeFileSync(join(path, "ledger.json"), Buffer.alloc(10_000));
  artifacts.written(path, aboutOf(service, timeMs, ["ledger.json"]));
  return basename(path);
}

function aboutOf(service: string, timeMs: number, files: readonly string[]): ArtifactJson {
  return {
    schema: "tidemark.artifact/1",
    ...{ service, version: "", env: "", host: "host", pid: 7, command: [], timeMs },
    ...{ reason: "", lastMoment: false, problems: [] },
    files: files.map((name) => ({ name, capture: "ledger", pid: 7 })),
  };
}

test("the newest of each service stay", () => {
  artifact("a", 3);
  const kept = [artifact("a", 2), artifact("a", 1), artifact("b", 9)];
  artifacts.tidy({ ...WIDE, count: 2 }, NOW);
  expect(names()).toEqual(kept.sort());
});

test("the oldest go if they are too old or too large together", () => {
  const [old, newer, newest] = [artifact("a", 30), artifact("b", 2), artifact("c", 1)];
  artifacts.tidy({ ...WIDE, keepMs: 24 * HOUR }, NOW);
  expect(names()).not.toContain(old);
  artifacts.tidy({ ...WIDE, mostBytes: 15_000 }, NOW);
  expect(names()).toEqual([newest]);
  expect(names()).not.toContain(newer);
});

test("folders of someone else, damaged ones and one that is being written stay", () => {
  const open = basename(artifacts.begin(aboutOf("a", NOW - 500 * HOUR, [])));
  mkdirSync(join(folder, "artifacts", "mine"));
  writeFileSync(join(folder, "artifacts", "mine", "about.json"), "{");
  writeFileSync(join(folder, "artifacts", "notes.txt"), "x");
  artifacts.tidy({ count: 0, keepMs: 0, mostBytes: 0 }, NOW);
  expect(names()).toEqual([open, "mine", "notes.txt"].sort());
});

test("a capture that was never completed is removed like any other", () => {
  artifacts.begin(aboutOf("a", NOW - 500 * HOUR, []));
  new Artifacts(folder).tidy({ ...WIDE, keepMs: HOUR }, NOW);
  expect(names()).toEqual([]);
});

test("a capture without files leaves no folder", () => {
  const path = artifacts.begin(aboutOf("a", NOW, []));
  artifacts.written(path, aboutOf("a", NOW, []));
  expect(names()).toEqual([]);
});

test("a service's name cannot lead out of the folder", () => {
  const path = artifacts.begin(aboutOf("../../../etc", NOW, []));
  expect(dirname(path)).toBe(join(folder, "artifacts"));
});
