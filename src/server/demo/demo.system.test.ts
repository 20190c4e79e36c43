/** The demo fleet has the faults that its description promises, and no others. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { diagnoseRecording } from "../../inspect/recorded/index.js";
import { present } from "../../model/base/present.js";
import { openRecording } from "../../recording/reader.js";
import { keepFromDemo, makeDemoRoom } from "./demo.js";
import { DemoRecorder, livesOf } from "./recordings.js";
import { DEMO_SERVICES } from "./services.js";

const NOW_MS = Date.UTC(2026, 2, 18, 15, 20);
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-demo-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The diagnosis of the first running instance of a service. */
async function diagnosisOf(name: string, nowMs = NOW_MS) {
  const service = present(DEMO_SERVICES.find((each) => each.name === name));
  const life = present(livesOf(service, nowMs)[0]);
  const path = join(folder, `${name}.tidemark`);
  writeFileSync(path, new DemoRecorder(life).begin(nowMs));
  return diagnoseRecording(openRecording(path), async () => {});
}

test("notifications leaks since its last release; the dict that keeps the subscribers is named", async () => {
  const { verdict, suspects } = await diagnosisOf("notifications");
  expect(verdict.kind).toBe("python-leak");
  expect(verdict.summary).toContain("Hub.subscribe (hub.py:112)");
  expect(suspects[0]?.holder?.path).toEqual(["module notifications.hub", "SUBSCRIBERS"]);
  expect(
    DEMO_SERVICES.find(({ name }) => name === "notifications")?.releases.map(
      ({ sites }) => sites.filter(({ course }) => course === "leaks").length,
    ),
  ).toEqual([0, 0, 1]);
});

test("thumbnails leaks native memory in the decoder that Decoder.open calls", async () => {
  const { verdict, suspects } = await diagnosisOf("thumbnails");
  expect(verdict.kind).toBe("native-leak");
  expect(suspects[0]?.stack.some((frame) => frame.function === "Decoder.open")).toBe(true);
});

test.each(
  DEMO_SERVICES.map(({ name }) => name).filter(
    (name) => !["notifications", "thumbnails"].includes(name),
  ),
)("%s is not accused, at whatever time of the day the demo is made", async (name) => {
  for (let hours = 0; hours < 24; hours += 4) {
    const { verdict } = await diagnosisOf(name, NOW_MS + hours * 3_600_000);
    expect(["steady", "cache-plateau", "warm-up", "insufficient-evidence"]).toContain(verdict.kind);
  }
});

test("an instance of notifications was killed at its limit, and its successor runs", () => {
  const lives = livesOf(
    present(DEMO_SERVICES.find(({ name }) => name === "notifications")),
    NOW_MS,
  );
  expect(lives.some(({ end }) => end?.killed === true)).toBe(true);
  expect(lives.filter(({ end }) => end === null)).toHaveLength(4);
});

test("a demo's folder is emptied for the next demo, but not after a server without --demo used it", async () => {
  const store = join(folder, "store");
  await makeDemoRoom(`duckdb:${store}`);
  mkdirSync(join(store, "streams"));
  await makeDemoRoom(`duckdb:${store}`);
  expect(readdirSync(store)).toEqual(["demo.json"]);
  writeFileSync(join(store, "data"), "of a user");
  keepFromDemo(store);
  await expect(makeDemoRoom(`duckdb:${store}`)).rejects.toThrow(/holds other data/);
  expect(readdirSync(store)).toEqual(["data"]);
});

test.each([
  ["the load is higher than when the window began", "2026-11-28T22:42:30Z"],
  ["the load is higher than when the window began", "2026-11-28T20:14:30Z"],
  ["the load is lower than when the window began", "2026-11-28T07:46:30Z"],
])("a cache that is full is no leak when %s (%s)", async (_, moment) => {
  const { verdict } = await diagnosisOf("checkout", Date.parse(moment));
  expect(verdict.kind, verdict.summary).toBe("cache-plateau");
});
