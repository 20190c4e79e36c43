import { EventEmitter } from "node:events";
import { expect, test, vi } from "vitest";
import type { LookupRequest } from "../../holders/lookup_request.js";
import { FIXTURE_TIME_MS, profileOf } from "../../model/profile/profile.fixture.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { CpuBudget } from "../budget/cpu_budget.js";
import { SuspectWatch } from "./suspect_watch.js";

const MIB = 2 ** 20;
const NOTHING = { liveSamples: () => new Map(), openings: () => new Map() };

const lookups = vi.hoisted(() => ({ asked: 0 }));

/** Each lookup finds one holder for all sites. */
vi.mock("../../holders/lookup_request.js", () => ({
  startLookup({ sites }: LookupRequest) {
    lookups.asked += 1;
    const counts = { looked: 1, held: 1, garbage: 0, graph: 0, unreferenced: 0 };
    const holder = { path: ["module app", "records"], type: "list", retainedBytes: 0, entries: 9 };
    const rows = sites.map(({ site }) => ({ site, madeAt: null, ...counts, ...holder }));
    const batch = { pid: 42, collector: null, rows };
    const worker = new EventEmitter();
    queueMicrotask(() => {
      worker.emit("message", { batch, census: null, cpuMs: 10, objects: 1_000, refusal: null });
      worker.emit("exit");
    });
    return worker;
  },
}));

function watching({ spentMs = 900, anonymousBytes = 300 * MIB } = {}) {
  let elapsedMs = 0;
  const watch = new SuspectWatch({
    root: 42,
    startMs: FIXTURE_TIME_MS,
    budget: new CpuBudget({ elapsedMs: () => elapsedMs, spentMs: () => spentMs }),
    ...{ addLimits: () => undefined, found: () => undefined, counted: () => undefined },
  });
  watch.polled([
    { timeMs: FIXTURE_TIME_MS, series: 0, metric: "anonRssBytes", value: anonymousBytes },
  ]);
  const tables = new ProfileTablesBuilder();
  const snapshotAt = (ms: number, live: number) => {
    elapsedMs = ms;
    const text = `main;record@/srv/app.py:7 ${live} samples=${Math.ceil(live / MIB)} allocated=${ms * 1e4}`;
    const { sites, files, copies, cohorts, peakMs, durationMs, ...profile } = profileOf(
      text,
      tables,
    );
    const snapshot = {
      ...{ sites, files, copies, cohorts, peakMs, durationMs, timeMs: FIXTURE_TIME_MS + ms },
    };
    const sampled = {
      length: 1,
      address: Float64Array.of(0x7f00_0000_1000),
      bytes: Float64Array.of(MIB),
      bornMs: Float64Array.of(FIXTURE_TIME_MS + ms / 2),
      stack: Uint32Array.of(sites.stack[0] ?? 0),
      domain: Uint8Array.of(sites.domain[0] ?? 0),
    };
    const pid = profile.processes[sites.process[0] ?? 0]?.pid ?? 0;
    const agents = { ...NOTHING, liveSamples: () => new Map([[pid, sampled]]) };
    watch.snapshotTaken({ tables: profile, snapshot, agent: {} as never, limits: [] }, agents, ms);
  };
  const isWantedAt = (ms: number, live: number) => {
    elapsedMs = ms;
    return watch.wantsSnapshot(ms, live);
  };
  return { snapshotAt, isWantedAt };
}

test("a lookup of a leak that exceeds the budget waits for seconds, not for the next regular snapshot", () => {
  const { snapshotAt, isWantedAt } = watching();
  for (let second = 1; second <= 9; second++) {
    snapshotAt(second * 1000, second * 8 * MIB);
  }
  expect([9_500, 11_900, 13_500].map((ms) => isWantedAt(ms, 72 * MIB))).toEqual([
    ...[false, false, true],
  ]);
  // It no longer grows: there is nothing to look up.
  snapshotAt(13_600, 0);
  expect(isWantedAt(20_000, 0)).toBe(false);
});

test("if snapshots are so expensive that none came since start-up, one is taken as soon as memory has grown", () => {
  const { snapshotAt, isWantedAt } = watching();
  snapshotAt(3_000, 100 * MIB);
  snapshotAt(7_000, 101 * MIB);
  expect(isWantedAt(7_250, 101 * MIB)).toBe(false);
  expect(isWantedAt(11_500, 120 * MIB)).toBe(false);
  expect(isWantedAt(12_500, 101 * MIB)).toBe(false);
  expect(isWantedAt(13_000, 110 * MIB)).toBe(true);
  snapshotAt(13_000, 110 * MIB);
  expect(isWantedAt(13_250, 110 * MIB)).toBe(false);
  expect(isWantedAt(19_500, 150 * MIB)).toBe(false);
  expect(isWantedAt(20_500, 150 * MIB)).toBe(true);
  snapshotAt(20_500, 150 * MIB);
  expect(isWantedAt(60_000, 300 * MIB)).toBe(false);
});

test("a leak whose holder was found is looked up again when the run is five times as long, not earlier", async () => {
  lookups.asked = 0;
  const { snapshotAt } = watching({ spentMs: 200, anonymousBytes: 10 * MIB });
  const asked: number[] = [];
  for (let second = 1; second <= 60; second++) {
    const before = lookups.asked;
    snapshotAt(second * 1000, second * 8 * MIB);
    await Promise.resolve(); // the answer
    if (lookups.asked > before) {
      asked.push(second);
    }
  }
  expect(asked).toEqual([9, 45]);
});
