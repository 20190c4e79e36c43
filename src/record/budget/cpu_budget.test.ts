import { expect, test } from "vitest";
import { CpuBudget } from "./cpu_budget.js";
import { LedgerSchedule, PollSchedule, SnapshotSchedule } from "./schedule.js";

test("recorders of one process divide the budget, and return their part", () => {
  const budget = new CpuBudget();
  expect(budget.perTarget(0.01)).toBe(0.01);
  const leave = [budget.join(), budget.join(), budget.join(), budget.join()];
  expect(budget.perTarget(0.01)).toBe(0.0025);
  leave[0]?.();
  leave[0]?.(); // a recorder that finishes after it was detached does not return its part twice
  expect(budget.perTarget(0.01)).toBeCloseTo(0.01 / 3);
  for (const stop of leave) {
    stop();
  }
  expect(budget.perTarget(0.01)).toBe(0.01);
});

/** CPU time of one target's work in an hour, in ms, when every poll takes 20 ms, a snapshot 200 ms, a ledger 100 ms. */
function spentInAnHour(budget: CpuBudget): number {
  const polls = new PollSchedule(budget);
  const snapshots = new SnapshotSchedule(budget);
  const ledgers = new LedgerSchedule(budget);
  let spent = 0;
  for (let elapsed = 0; elapsed < 3_600_000; elapsed += polls.distance(elapsed)) {
    spent += 20;
    polls.polled(elapsed, { ownCpuMs: 20, waitCpuMs: 0, processes: 1, expensive: false });
    if (snapshots.due(elapsed, 0) !== null) {
      spent += 200;
      snapshots.taken(elapsed, 0, 200);
    }
    if (ledgers.due(elapsed)) {
      spent += 100;
      ledgers.read(elapsed, 100);
    }
  }
  return spent;
}

/** The CPU time for lookups after that many seconds, of which regular work used a part. */
function spareAfter(seconds: number, spentMs: number): number {
  const budget = new CpuBudget({ elapsedMs: () => seconds * 1000, spentMs: () => spentMs });
  return Math.round(budget.spareMs());
}

test("work that can wait gets what regular work leaves", () => {
  // The time that regular work needs until the end of the first minute is reserved.
  expect([spareAfter(0, 0), spareAfter(10, 200), spareAfter(60, 600)]).toEqual([760, 650, 700]);
  // Half a percent of a core from then on, minus the time already spent.
  expect(spareAfter(120, 1_000)).toBe(600);
  expect(spareAfter(3_600, 19_500)).toBe(-500);
});

/** The share of a core that regular work may use, of 0.4 %, after that many seconds. */
function shareAfter(seconds: number, spentMs: number): number {
  const budget = new CpuBudget({ elapsedMs: () => seconds * 1000, spentMs: () => spentMs });
  return Math.round(budget.shareNow(0.004) * 1e4) / 1e4;
}

test("in the first minute, regular work shrinks to what is left, but not below half", () => {
  expect([shareAfter(0, 0), shareAfter(10, 800)]).toEqual([0.004, 0.004]);
  expect([shareAfter(20, 1_030), shareAfter(20, 1_120)]).toEqual([0.003, 0.002]);
  expect([shareAfter(20, 3_000), shareAfter(59.9, 1_500)]).toEqual([0.002, 0.002]);
  expect([shareAfter(60, 3_000), shareAfter(600, 9_000)]).toEqual([0.004, 0.004]);
});

test("overdrafts are bounded, and paid back before anything is lent again", () => {
  let [seconds, spentMs] = [60, 600];
  const budget = new CpuBudget({ elapsedMs: () => seconds * 1000, spentMs: () => spentMs });
  const figures = () => [budget.spareMs(), budget.withCreditMs(false)].map(Math.round);
  expect(figures()).toEqual([700, 3_200]);
  spentMs += 3_200;
  expect(figures()).toEqual([-2_500, -2_500]);
  seconds += 300;
  expect(figures()).toEqual([-1_000, -1_000]);
  seconds += 200;
  expect(figures()).toEqual([0, 2_500]);
  const [stop] = [budget.join(), budget.join()];
  expect(figures()).toEqual([0, 1_250]);
  stop();
});

test("a first lookup may overdraw what regular work on a busy machine owes", () => {
  const budget = new CpuBudget({ elapsedMs: () => 24_000, spentMs: () => 1_600 });
  expect(
    [budget.spareMs(), budget.withCreditMs(false), budget.withCreditMs(true)].map(Math.round),
  ).toEqual([-624, -624, 1_876]);
});

test("ten recorders together spend about as much as one", () => {
  const alone = new CpuBudget();
  alone.join();
  const shared = new CpuBudget();
  for (let target = 0; target < 10; target++) {
    shared.join();
  }
  // The first seconds of each are skipped.
  expect(10 * spentInAnHour(shared)).toBeLessThan(0.008 * 3_600_000);
  expect(spentInAnHour(alone)).toBeLessThan(0.005 * 3_600_000);
});
