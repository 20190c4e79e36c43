/** If a share of the instances has profiles, no answer presents their sum as that of the service. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { streamName } from "../../recording/sender/stream_name.js";
import { StreamReader } from "../../recording/stream_reader.js";
import { streamBytes } from "../../recording/streams.fixture.js";
import { openStore, type Store } from "../../store/index.js";
import { fleetDiff, growing } from "./comparisons.js";
import { coverageLimits, coverageOf } from "./coverage.js";
import { endpoints } from "./endpoints.js";

const MINUTE = 60_000;
const MIB = 2 ** 20;
const LIMITS = { frameBytes: 64 << 20, callBytes: 128 << 20 };
const START = Date.UTC(2026, 10, 27, 9);
const WINDOW = { startMs: START, endMs: START + 60 * MINUTE };

let folder = "";
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-coverage-"));
  ({ store } = await openStore(`duckdb:${join(folder, "data")}`));
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

/** Each instance leaks the same; the first ones have profiles. */
async function service(name: string, instances: number, withProfiles: number): Promise<void> {
  const minutes = Array.from({ length: 61 }, (_, minute) => minute);
  for (let pid = 1; pid <= instances; pid++) {
    const bytes = streamBytes({
      ...{ service: name, pid: pid + name.length * 1000, startedMs: START },
      rss: minutes.map((minute) => [minute * MINUTE, (100 + minute) * MIB]),
      profiles:
        pid > withProfiles
          ? []
          : minutes
              .filter((minute) => minute % 5 === 0)
              .map((minute) => [minute * MINUTE, `main;keep ${10 * MIB} variance=1`]),
    });
    const items = new StreamReader("it", LIMITS).take(bytes);
    await store.write([{ stream: streamName(bytes), items, endOffset: bytes.length }], 0);
  }
}

test("the factor scales the sum of a share of the instances to all, and a sentence names it", async () => {
  await service("shop", 20, 2);
  const query = { ...WINDOW, of: { service: "shop" } };
  const profile = await store.profile({ ...query, mostStacks: 10, over: "reported" });
  const coverage = await coverageOf(store, query.of, profile);
  expect(coverage).toEqual({
    instances: expect.closeTo(2, 1),
    running: expect.closeTo(20, 1),
    factor: expect.closeTo(10, 1),
  });
  const live = profile.snapshot.sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0);
  expect((live * coverage.factor) / MIB).toBeCloseTo(200, 0);
  const sentence = expect.stringMatching(
    /^Profiles cover 2\.0 of 20\.0 instances that ran on average \(10 %\)/,
  );
  expect(coverageLimits(coverage)).toEqual([sentence]);
  expect((await endpoints(store, query, { by: "endpoint", top: 5 })).limits).toEqual([sentence]);
  expect(await growing(store, { service: "shop" }, WINDOW, 5)).toMatchObject({
    coverage: { factor: expect.closeTo(10, 1) },
    limits: [sentence],
  });
  const side = { selector: '{service_name="shop"}', window: WINDOW };
  const compared = async (per: "none" | "instance") =>
    fleetDiff(store, [side, side], { figure: "liveBytes", per, top: 5 });
  expect((await compared("none")).limits).toEqual([
    expect.stringContaining("Profiles cover 2.0 of 20.0"),
    expect.stringContaining("Profiles cover 2.0 of 20.0"),
  ]);
  const perInstance = await compared("instance");
  expect(perInstance.limits).toEqual([]);
  expect(perInstance.left.total / MIB).toBeCloseTo(10, 1);
});

test("nothing is said if all instances have profiles, or the selection is one of them", async () => {
  await service("whole", 3, 3);
  const query = { ...WINDOW, of: { service: "whole" } };
  const profile = await store.profile({ ...query, mostStacks: 10, over: "reported" });
  const coverage = await coverageOf(store, query.of, profile);
  expect(coverage).toMatchObject({ factor: 1, running: expect.closeTo(3, 1) });
  expect(coverageLimits(coverage)).toEqual([]);
  const nobody = { service: "nobody" };
  const none = await coverageOf(store, nobody, { instances: 0, reported: null });
  expect([none, coverageLimits(none)]).toEqual([{ instances: 0, running: 0, factor: 1 }, []]);
});

test("means, rates and instances are over the time in which a service reported, not over the time before it existed", async () => {
  const minutes = Array.from({ length: 13 }, (_, minute) => minute);
  const bytes = streamBytes({
    ...{ service: "young", version: "7", pid: 9, startedMs: START + 48 * MINUTE },
    rss: minutes.map((minute) => [minute * MINUTE, (100 + 10 * minute) * MIB]),
    // 10 MiB a minute, of which nothing is freed.
    profiles: minutes.map((minute) => [
      minute * MINUTE,
      `main;keep ${Math.max(1, 10 * minute) * MIB} variance=1`,
    ]),
  });
  const items = new StreamReader("it", LIMITS).take(bytes);
  await store.write([{ stream: streamName(bytes), items, endOffset: bytes.length }], 0);
  const grown = await growing(store, { service: "young" }, WINDOW, 5);
  expect(grown.early.startMs).toBe(START + 48 * MINUTE);
  expect(grown.growthBytesPerHour / MIB).toBeCloseTo(600, -1);
  const side = (selector: string) => ({ selector, window: WINDOW });
  const young = side('{service_name="young", version="7"}');
  const figures = { figure: "liveBytes", per: "instance", top: 5 } as const;
  const { left } = await fleetDiff(store, [young, young], figures);
  expect([left.instances, left.total / MIB]).toEqual([
    expect.closeTo(1, 2),
    expect.closeTo(55, -1),
  ]);
  const query = { ...WINDOW, of: { service: "young" } };
  const { outside, coverage } = await endpoints(store, query, { by: "endpoint", top: 5 });
  expect(outside.liveBytes / MIB).toBeCloseTo(55, -1);
  expect(coverage.factor).toBe(1);
  // A version that does not exist is no version with 0 B.
  const none = side('{service_name="young", version="99"}');
  const { left: known, right: unknown } = await fleetDiff(store, [young, none], figures);
  expect([known.isUnknown, unknown.isUnknown]).toEqual([undefined, true]);
});
