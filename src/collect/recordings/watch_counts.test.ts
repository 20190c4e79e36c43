/** What a log says about the number of programs. */
import { expect, test } from "vitest";
import type { Program } from "../policy/programs.js";
import { newlyWatched, type Watched } from "./recorders.js";
import { WatchCounts } from "./watch_counts.js";
import type { WatchEvent } from "./watch_event.js";

/** Recorded from outside, as old as this. */
function watched(ageMs: number): Watched {
  const program = { root: { startedMs: Date.now() - ageMs } } as unknown as Program;
  const growing = { kind: "outside" } as Watched["growing"];
  return { ...newlyWatched(program, {} as Watched["rule"]), growing };
}

function reporting() {
  const reports: number[] = [];
  const counts = new WatchCounts({ takeShortLived: () => 0 }, (event: WatchEvent) => {
    reports.push(event.kind === "watching" ? event.outside : -1);
  });
  return { counts, reports };
}

test("the first report waits for programs that started just before the collector", () => {
  const { counts, reports } = reporting();
  counts.report([watched(3_000)], 1_000);
  expect(reports).toEqual([]);
  counts.report([watched(9_000)], 7_000);
  expect(reports).toEqual([1]);
});

test("it waits for eight seconds at most, and not at all for old programs or none", () => {
  const busy = reporting();
  for (const ms of [1_000, 5_000, 8_000, 9_000, 10_000]) {
    busy.counts.report([watched(20_000), watched(1_000)], ms);
  }
  expect(busy.reports).toEqual([1]);
  const old = reporting();
  old.counts.report([watched(20_000), watched(10_000)], 1_000);
  const none = reporting();
  none.counts.report([], 1_000);
  expect([old.reports, none.reports]).toEqual([[2], [0]]);
});
