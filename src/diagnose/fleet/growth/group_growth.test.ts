import { expect, test } from "vitest";
import { diagnoseService } from "../diagnose_fleet.js";
import {
  DAY,
  diagnosisOf,
  END,
  flat,
  HOUR,
  type Life,
  MIB,
  processOf,
  three,
} from "../fleet_evidence.fixture.js";
import { fleetSuspects } from "./fleet_suspects.js";
import { groupGrowth, type Judging } from "./group_growth.js";

const judging: Judging = {
  ...{ endMs: END, isWeekOpen: false, z: 3.5 },
  ...{ isLoadKnown: true, before: [], loadBytes: 0 },
};

/** Without the daily load of the fixture. `workAt`: requests at an age in hours. */
const lifeOf = (life: Life, workAt?: (hours: number) => number) => {
  const process = processOf(life);
  const ages = process.rss.times.map((time) => (time - process.startedMs) / HOUR);
  const values = process.rss.values.map(
    (value, at) =>
      value - 20 * MIB * (1 - Math.cos((2 * Math.PI * (process.rss.times[at] as number)) / DAY)),
  );
  const rss = { times: process.rss.times, values };
  return {
    process: { ...process, rss },
    rss,
    work: workAt === undefined ? null : ages.map(workAt),
  };
};
const livesOf = (life: Omit<Life, "instance">, workAt?: (hours: number) => number) =>
  three(life).map((each) => lifeOf(each, workAt));

test("a leak that follows time grows on while requests become more", () => {
  const busier = (hours: number) => 1000 * hours + 60 * hours ** 2;
  const lives = livesOf({ version: "1", fromDaysAgo: 2, mib: (hours) => 3 * hours }, busier);
  expect(groupGrowth(lives, judging)).toMatchObject({ shape: "leaking", isByWork: false });
});

test("a leak beside a cache that has filled is a leak; two caches are none", () => {
  const filled = (mib: number, fillHours: number) => (hours: number) =>
    mib * (1 - Math.exp(-hours / fillHours));
  const shapeOf = (mib: (hours: number) => number) =>
    groupGrowth(livesOf({ version: "1", fromDaysAgo: 2.2, mib }), judging)?.shape;
  expect(shapeOf((hours) => filled(110, 5)(hours) + 1.4 * hours)).toBe("leaking");
  expect(shapeOf((hours) => filled(110, 3)(hours) + filled(70, 20)(hours))).not.toBe("leaking");
});

/** Started at 3 h each day, and ended a day later. */
const daily = (version: string, from: number, to: number, mib: (hours: number) => number) =>
  Array.from({ length: from - to }, (_, day) => from - day).flatMap((days) =>
    three({ version, fromDaysAgo: days, ...(days > 1 ? { toDaysAgo: days - 0.99 } : {}), mib }),
  );

test("processes that are restarted every day leak if they rise in a line that is certainly straight", () => {
  const shapeOf = (mib: (hours: number) => number) =>
    groupGrowth(
      daily("1", 5, 0, mib).map((each) => lifeOf(each)),
      judging,
    )?.shape;
  expect(shapeOf((hours) => 1.1 * hours)).toBe("leaking");
  expect(shapeOf((hours) => 26 * (1 - Math.exp(-hours / 10)))).not.toBe("leaking");
  expect(shapeOf((hours) => 0.3 * hours)).not.toBe("leaking");
});

test("growth over a whole day is no daily load, which ends where it began", () => {
  const shapeOf = (mib: (hours: number) => number) =>
    groupGrowth(
      daily("1", 5, 0, mib).map((each) => lifeOf(each)),
      { ...judging, isLoadKnown: false },
    )?.shape;
  const wave = (hours: number) => 1.6 * Math.sin((2 * Math.PI * hours) / 24);
  expect(shapeOf((hours) => 4 * hours + wave(hours))).toBe("leaking");
  expect(shapeOf((hours) => 60 * (1 - Math.cos((2 * Math.PI * hours) / 24)))).not.toBe("leaking");
});

test("growth within two days has to exceed the load, where requests are unknown", () => {
  const shapeOf = (loadMib: number) =>
    groupGrowth(livesOf({ version: "1", fromDaysAgo: 1.7, mib: (hours) => 2 * hours }), {
      ...judging,
      loadBytes: loadMib * MIB,
    })?.shape;
  expect(shapeOf(20)).toBe("leaking");
  expect(shapeOf(100)).toBe("undecided");
});

test("a leak that begins while its version runs is judged since then; a cache that is flushed rises to what it was", () => {
  const since = (hours: number, startHours: number) => Math.max(0, hours - startHours);
  const found = diagnosisOf(
    three({ version: "1", fromDaysAgo: 9, mib: (hours) => 4 * since(hours, 6 * 24) }),
  );
  expect(found.verdict.kind).toBe("python-leak");
  expect((found.leak?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(4, 0);
  const flushed = (hours: number) => 3 * ((hours + 8) % 60);
  for (const days of [8, 8.5, 9, 9.5, 10]) {
    const calm = diagnosisOf(three({ version: "1", fromDaysAgo: days, mib: flushed }));
    expect(calm.verdict.kind).not.toBe("python-leak");
  }
});

test("a leak that begins days after its version was deployed is judged since then, although its processes are as old as the version", () => {
  const found = (perHour: number, fill: number) =>
    diagnosisOf(
      three({
        ...{ version: "1", fromDaysAgo: 5 },
        mib: (hours) =>
          60 * (1 - Math.exp(-hours / 2)) +
          perHour * Math.max(0, hours - 72) +
          fill * (1 - Math.exp(-Math.max(0, hours - 72) / 6)),
      }),
    );
  const leak = found(5, 0);
  expect(leak.verdict.kind).toBe("python-leak");
  expect((leak.leak?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(5, 0);
  expect(found(0, 150).verdict.kind).not.toBe("python-leak");
});

test("what would soon pass the limit is reported after a day, where the version before was level", () => {
  const found = (limitMib: number, before: (hours: number) => number) => {
    const lives = [
      ...three({ version: "1.0", fromDaysAgo: 8, toDaysAgo: 26 / 24, mib: before }),
      ...three({ version: "1.1", fromDaysAgo: 26 / 24, mib: (hours) => 8 * hours }),
    ];
    const processes = lives.map((life) => {
      const startedMs = END - life.fromDaysAgo * DAY;
      const angle = (hours: number) => (2 * Math.PI * (startedMs + hours * HOUR)) / DAY;
      const requestsPerSecond = (hours: number) => 10 * (1.2 - Math.cos(angle(hours)));
      return { ...processOf({ ...life, requestsPerSecond }), limitBytes: limitMib * MIB };
    });
    const window = { startMs: END - 14 * DAY, endMs: END };
    return diagnoseService({ service: "app", window, processes }, 1).verdict.kind;
  };
  expect(found(1024, () => 0)).toBe("python-leak");
  expect(found(8192, () => 0)).not.toBe("python-leak");
  expect(found(1024, (hours) => 200 * (1 - Math.exp(-hours / 12)))).not.toBe("python-leak");
});

test("what earlier versions did at the same ages is no part of the growth of the next one", () => {
  const cache = (hours: number) => 90 * (1 - Math.exp(-hours / 8));
  const found = (mib: (hours: number) => number) =>
    diagnosisOf([
      ...three({ version: "1.0", fromDaysAgo: 7, toDaysAgo: 2.3, mib: cache }),
      ...three({ version: "1.1", fromDaysAgo: 2.3, mib }),
    ]).verdict.kind;
  expect(found((hours) => cache(hours) + 1.3 * hours)).toBe("python-leak");
  expect(found((hours) => 2 * cache(hours))).not.toBe("python-leak");
  expect(found(flat)).not.toBe("python-leak");
});

test("a line that filled fast and goes on slowly is not accused within three days", () => {
  const found = (fill: number) => {
    const held = (hours: number) =>
      60 * (fill * (1 - Math.exp(-hours)) + ((1 - fill) * hours) / 30);
    const mib = (hours: number) => held(hours) + 12 * Math.sin(hours / 2.2);
    const [before, since] = [{ stored: () => 0.1 }, { stored: held }];
    return diagnosisOf([
      ...three({ version: "1.0", fromDaysAgo: 10, toDaysAgo: 1.8, mib: flat, lines: before }),
      ...three({ version: "1.1", fromDaysAgo: 1.8, mib, lines: since }),
    ]).verdict.kind;
  };
  expect(found(0.8)).not.toBe("python-leak");
  expect(found(0.1)).toBe("python-leak");
});

test("a line whose container has no bound leaks, although it grows in bursts that no fit explains", () => {
  const bursts = (hours: number) =>
    hours + 2.2 * Math.sin(hours / 2.4) + 1.4 * Math.sin(hours / 1.5);
  const held = (hours: number) => 3 * (bursts(hours) + 9 * (1 - Math.exp(-hours / 2)));
  const found = (bound: number) =>
    diagnosisOf([
      ...three({
        version: "1.0",
        fromDaysAgo: 10,
        toDaysAgo: 1.4,
        mib: flat,
        lines: { work: () => 50 },
      }),
      ...three({
        ...{ version: "1.1", fromDaysAgo: 1.4, mib: held, bounds: { remember: bound } },
        lines: { work: () => 50, remember: held },
      }),
    ]);
  expect(found(0).verdict.kind).toBe("python-leak");
  expect(found(0).suspects[0]?.line.function).toBe("remember");
  expect(found(100_000).verdict.kind).not.toBe("python-leak");
});

test("a leak beside a cache that fills faster than it leaks is shown by its own line", () => {
  const found = (fill: number, perHour: number) => {
    const fills = (hours: number) => fill * (1 - Math.exp(-hours / 25));
    return diagnosisOf(
      three({
        ...{ version: "1.0", fromDaysAgo: 3.5 },
        mib: (hours) => fills(hours) + perHour * hours,
        lines: { fill: fills, remember: (hours) => perHour * hours },
        bounds: { fill: 5000, remember: 0 },
      }),
    );
  };
  for (const fill of [100, 150, 200, 300]) {
    expect(found(fill, 1).verdict.kind, String(fill)).toBe("python-leak");
    expect(found(fill, 1).suspects[0]?.line.function).toBe("remember");
    expect(found(fill, 0).verdict.kind).not.toBe("python-leak");
  }
});

test("the line that shows a leak is the first suspect, although a cache grows faster beside it", () => {
  const lines = { cached: (hours: number) => 5 * hours, remember: (hours: number) => 3 * hours };
  const processes = three({ version: "1", fromDaysAgo: 2, mib: flat, lines }).map(processOf);
  const shownBy = processes[0]?.sites[1]?.stack[0];
  const first = (found: Parameters<typeof fleetSuspects>[1]) =>
    fleetSuspects(processes, found, judging)[0]?.line.function;
  expect(first({ rate: (8 * MIB) / HOUR })).toBe("cached");
  expect(first({ rate: (8 * MIB) / HOUR, ...(shownBy && { shownBy }) })).toBe("remember");
});
