import { expect, test } from "vitest";
import { FIXTURE_TIME_MS, profileOf } from "../../model/profile/profile.fixture.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { CpuBudget } from "../budget/cpu_budget.js";
import { SuspectWatch } from "./suspect_watch.js";

const MIB = 2 ** 20;
const NOTHING = { liveSamples: () => new Map(), openings: () => new Map() };

test("a lookup of a leak that exceeds the budget waits for seconds, not for the next regular snapshot", () => {
  let elapsedMs = 0;
  const watch = new SuspectWatch({
    root: 42,
    startMs: FIXTURE_TIME_MS,
    budget: new CpuBudget({ elapsedMs: () => elapsedMs, spentMs: () => 900 }),
    ...{ addLimits: () => undefined, found: () => undefined, counted: () => undefined },
  });
  watch.polled([{ timeMs: FIXTURE_TIME_MS, series: 0, metric: "anonRssBytes", value: 300 * MIB }]);
  const tables = new ProfileTablesBuilder();
  const snapshotAt = (ms: number, live: number) => {
    elapsedMs = ms;
    const text = `main;record@/srv/app.py:7 ${live} samples=${Math.ceil(live / MIB)} allocated=${ms * 1e4}`;
    const { sites, files, copies, cohorts, peakMs, durationMs, ...profile } = profileOf(
      text,
      tables,
    );
    const snapshot = {
      sites,
      files,
      copies,
      cohorts,
      peakMs,
      durationMs,
      timeMs: FIXTURE_TIME_MS + ms,
    };
    watch.snapshotTaken({ tables: profile, snapshot, agent: {} as never, limits: [] }, NOTHING, ms);
  };
  const wantedAfter = (ms: number) => {
    elapsedMs = ms;
    return watch.wantsSnapshot(ms);
  };
  for (let second = 1; second <= 9; second++) {
    snapshotAt(second * 1000, second * 8 * MIB);
  }
  expect([9_500, 12_000, 13_500].map(wantedAfter)).toEqual([false, false, true]);
  // It no longer grows: there is nothing to look up.
  snapshotAt(13_600, 0);
  expect(wantedAfter(20_000)).toBe(false);
});
