import { describe, expect, test } from "vitest";
import { CpuBudget } from "./cpu_budget.js";
import { LedgerSchedule, PollSchedule, SnapshotSchedule } from "./schedule.js";

const HOUR = 3_600_000;
const MIB = 2 ** 20;

/** Simulates a run of that length, and returns its polls and snapshots. */
function play(
  lengthMs: number,
  costs: { poll: number; snapshot: number; processes?: number },
  liveBytes: (elapsedMs: number) => number,
) {
  const polls = new PollSchedule();
  const snapshots = new SnapshotSchedule();
  const taken: { elapsedMs: number; kind: string }[] = [];
  let cpuMs = 0;
  let count = 0;
  for (let elapsedMs = 0; elapsedMs < lengthMs; elapsedMs += polls.distance(elapsedMs)) {
    count += 1;
    polls.polled(elapsedMs, {
      ownCpuMs: costs.poll,
      waitCpuMs: 0,
      processes: costs.processes ?? 1,
      expensive: false,
    });
    cpuMs += costs.poll;
    const kind = snapshots.due(elapsedMs, liveBytes(elapsedMs));
    if (kind) {
      snapshots.taken(elapsedMs, liveBytes(elapsedMs), costs.snapshot);
      cpuMs += costs.snapshot;
      taken.push({ elapsedMs, kind });
    }
  }
  return { polls: count, snapshots: taken, share: cpuMs / lengthMs };
}

describe("polls", () => {
  test("four per second in the first minute, more at its beginning, fewer later", () => {
    const schedule = new PollSchedule();
    expect([0, 40, 100, 400].map((at) => schedule.distance(at))).toEqual([25, 25, 50, 200]);
    expect(
      [500, 30_000, 59_999, 60_000, 4 * 60_000, 16 * 60_000].map((at) => schedule.distance(at)),
    ).toEqual([250, 250, 250, 500, 1000, 2000]);
    expect(play(60_000, { poll: 0.5, snapshot: 5 }, () => 0).polls).toBe(246);
  });

  test.each([
    ["polls of a small tree,", 0.5, 1],
    ["polls of a hundred processes,", 30, 100],
    ["polls of a thousand processes,", 400, 1000],
  ])("%s %d ms each, cost under 0.4 percent of a core", (_name, poll, processes) => {
    expect(play(HOUR, { poll, snapshot: 20, processes }, () => 0).share).toBeLessThan(0.004);
  });

  test("a launcher with many processes does not make the polls of the program rare", () => {
    const schedule = new PollSchedule();
    for (let elapsedMs = 0; elapsedMs < 2_000; elapsedMs += schedule.distance(elapsedMs)) {
      schedule.polled(elapsedMs, { ownCpuMs: 60, waitCpuMs: 0, processes: 40, expensive: false });
    }
    schedule.polled(2_100, { ownCpuMs: 1.5, waitCpuMs: 0, processes: 1, expensive: false });
    expect(schedule.distance(2_100)).toBeLessThanOrEqual(300);
  });

  test("expensive metrics are read at an interval that fits their cost", () => {
    const schedule = new PollSchedule();
    expect(schedule.expensiveIsDue(0)).toBe(true);
    schedule.polled(0, { ownCpuMs: 50, waitCpuMs: 0, processes: 1, expensive: true }); // 10 GiB under the target's lock
    expect(schedule.expensiveIsDue(1000)).toBe(false);
    expect(schedule.expensiveIsDue(50 / 0.002 - 1)).toBe(false);
    expect(schedule.expensiveIsDue(50 / 0.002 + 1)).toBe(true);
    schedule.polled(60_000, { ownCpuMs: 50, waitCpuMs: 0, processes: 1, expensive: true }); // a smaller share after the first minute
    expect(schedule.expensiveIsDue(60_000 + 50 / 0.0008 - 1)).toBe(false);
    expect(schedule.expensiveIsDue(60_000 + 50 / 0.0008 + 1)).toBe(true);
  });
});

describe("snapshots", () => {
  test.each([
    ["a minute", HOUR / 60],
    ["an hour", HOUR],
    ["a month", 30 * 24 * HOUR],
  ])("bounded in %s, and at a steady pace of its length", (_name, length) => {
    const growing = play(
      length,
      { poll: 0.5, snapshot: 10 },
      (elapsedMs) => elapsedMs * 1000 + 64 * MIB,
    );
    expect(growing.snapshots.length).toBeGreaterThan(10);
    expect(growing.snapshots.length).toBeLessThan(250);
    growing.snapshots.slice(1).forEach(({ elapsedMs }, i) => {
      const before = growing.snapshots[i]?.elapsedMs ?? 0;
      expect(elapsedMs - before).toBeLessThan(Math.max(5_000, elapsedMs * 0.25 + 240_000));
    });
  });

  test("after an expensive snapshot, the next one is taken when the run is twice as long, and its cost counts", () => {
    const schedule = new SnapshotSchedule();
    schedule.taken(7_600, 0, 300); // symbols of a large library
    expect(schedule.due(15_000, 0)).toBe(null);
    expect(schedule.due(15_300, 0)).toBe("poll");
    schedule.taken(15_300, 0, 100);
    expect(schedule.due(40_200, 0)).toBe(null);
    expect(schedule.due(40_300, 0)).toBe("poll"); // 0.4 % of a core in the first minute
    schedule.taken(60_000, 0, 100);
    expect(schedule.due(159_000, 0)).toBe(null); // 0.1 % after it
    expect(schedule.due(160_000, 0)).toBe("poll");
  });

  test("a new maximum triggers a snapshot", () => {
    const { snapshots } = play(HOUR, { poll: 0.5, snapshot: 1 }, (elapsedMs) =>
      elapsedMs > HOUR / 2 ? 900 * MIB : 90 * MIB,
    );
    const peak = snapshots.find(({ elapsedMs }) => elapsedMs > HOUR / 2);
    expect(peak?.kind).toBe("peak");
    expect((peak?.elapsedMs ?? 0) - HOUR / 2).toBeLessThan(10_000);
  });

  test("snapshots stay within their share, however expensive they are", () => {
    expect(
      play(HOUR, { poll: 0.5, snapshot: 3_000 }, (elapsedMs) => elapsedMs * 1e4).share,
    ).toBeLessThan(0.009);
  });
});

test("a short budget in the first minute makes ledgers rarer, but not snapshots", () => {
  const budget = new CpuBudget({ elapsedMs: () => 30_000, spentMs: () => 1_500 });
  const [ledgers, snapshots] = [new LedgerSchedule(budget), new SnapshotSchedule(budget)];
  for (const at of [5_000, 10_000, 30_000]) {
    ledgers.read(at, 20);
    snapshots.taken(at, 0, 40);
  }
  expect([45_900, 46_100].map((at) => ledgers.due(at))).toEqual([false, true]);
  expect([39_900, 40_100].map((at) => snapshots.due(at, 0))).toEqual([null, "poll"]);
});

describe("ledgers", () => {
  /** Times of the ledgers of a run, one poll a second. */
  const times = (lengthMs: number, costMs: number): number[] => {
    const schedule = new LedgerSchedule();
    const taken: number[] = [];
    for (let elapsedMs = 0; elapsedMs < lengthMs; elapsedMs += 1000) {
      if (schedule.due(elapsedMs)) {
        taken.push(elapsedMs);
        schedule.read(elapsedMs, costMs);
      }
    }
    return taken;
  };

  test("the first after five seconds, then at growing intervals", () => {
    const cheap = times(HOUR, 1);
    expect(cheap.slice(0, 3)).toEqual([5_000, 10_000, 15_000]);
    const distances = cheap.slice(1).map((time, index) => time - (cheap[index] ?? 0));
    expect(distances.every((distance, index) => distance >= (distances[index - 1] ?? 0))).toBe(
      true,
    );
  });

  test("at most a thousandth of a core, however expensive a ledger is", () => {
    const costly = times(HOUR, 500);
    // A third of the first one's cost counts, because its code is not compiled yet.
    expect(costly.slice(0, 2)).toEqual([5_000, 72_000]);
    expect((costly.length * 500) / HOUR).toBeLessThanOrEqual(0.001);
    expect(costly.length).toBeGreaterThan(4);
  });
});
