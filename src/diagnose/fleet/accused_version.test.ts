import { expect, test } from "vitest";
import { diagnoseService } from "./diagnose_fleet.js";
import { DAY, diagnosisOf, END, flat, MIB, processOf, three } from "./fleet_evidence.fixture.js";

/** After how many days a line is accused, in steps of three hours. */
function daysUntilAccused(limitMib: number, withSites = false): number {
  const isAccused = (days: number) => {
    const lives = three({ version: "1.0", fromDaysAgo: days, mib: (hours) => 1.2 * hours });
    const processes = lives.map((life) => ({
      ...processOf({ ...life, withSites }),
      limitBytes: limitMib * MIB,
    }));
    const window = { startMs: END - 14 * DAY, endMs: END };
    return diagnoseService({ service: "app", window, processes }, 1).verdict.kind === "python-leak";
  };
  const days = Array.from({ length: 40 }, (_, at) => (at + 1) / 8);
  return days.find(isAccused) ?? Number.NaN;
}

test("RSS alone accuses a version that leaks slowly only after it has done so for six hours", () => {
  const fast = daysUntilAccused(280);
  const slow = daysUntilAccused(4096);
  expect(slow).toBeGreaterThanOrEqual(fast + 0.25);
  expect(slow).toBeLessThan(fast + 1);
  expect(daysUntilAccused(4096, true)).toBeLessThanOrEqual(fast);
});

/** A cache that a new process fills within hours. */
const fills = (hours: number) => 60 * (1 - Math.exp(-hours / 2));

test("an instance that leaks alone is not forgotten as soon as a version is deployed", () => {
  const old = (mib: (hours: number) => number) => ({ version: "1.0", fromDaysAgo: 5, mib });
  const deployed = (daysAgo: number) => [
    ...[0, 1, 2, 3, 4, 5].map((instance) => ({
      ...old((hours) => fills(hours) + (instance === 2 ? 3 * hours : 0)),
      ...{ instance, toDaysAgo: daysAgo },
    })),
    ...[0, 1, 2, 3, 4, 5].map((instance) => ({
      ...{ instance, version: "1.1", fromDaysAgo: daysAgo },
      mib: (hours: number) => fills(hours) + (instance === 2 ? 3 * hours : 0),
    })),
  ];
  const young = diagnosisOf(deployed(0.2)).verdict;
  expect(young.kind).toBe("python-leak");
  expect(young.summary).toMatch(/leaked .* on instance app-2 .*too early to say whether 1\.1/);
});

test("an instance that leaked alone is found within hours in the next version, if it is ahead of its siblings again", () => {
  const deployed = (perHour: number, fromDaysAgo = 0.5) =>
    diagnosisOf(
      [0, 1, 2, 3, 4, 5].flatMap((instance) => {
        const leaks = (rate: number) => (hours: number) =>
          fills(hours) + (instance === 2 ? rate * hours : 0);
        return [
          { instance, version: "1.0", fromDaysAgo: 5, toDaysAgo: fromDaysAgo, mib: leaks(3) },
          { instance, version: "1.1", fromDaysAgo, mib: leaks(perHour) },
        ];
      }),
    );
  const again = deployed(3);
  expect(again.verdict.summary).toMatch(/^shop leaks \d.* on instance app-2 alone/);
  expect(again.leak?.version).toBe("1.1");
  expect(again.leak?.since).toBe("1.0");
  expect(deployed(0).leak?.version).not.toBe("1.1");
  expect(deployed(3, 0.2).leak?.version).not.toBe("1.1");
});

test("a leak is not over while the caches of the next version fill, and is once it runs without rising", () => {
  const leaking = three({
    ...{ version: "1.0", fromDaysAgo: 6, mib: (hours: number) => fills(hours) + 4 * hours },
  });
  const next = (daysAgo: number, mib: (hours: number) => number) =>
    diagnosisOf([
      ...leaking.map((life) => ({ ...life, toDaysAgo: daysAgo })),
      ...three({ version: "1.1", fromDaysAgo: daysAgo, mib }),
    ]).verdict;
  for (const hours of [2, 4, 8]) {
    expect(next(hours / 24, fills).kind).toBe("python-leak");
    expect(next(hours / 24, (age) => fills(age) + 4 * age).kind).toBe("python-leak");
  }
  expect(next(2, fills).kind).not.toBe("python-leak");
  expect(next(2, flat).kind).not.toBe("python-leak");
});

test("a rollback ends a leak at once, and the version that runs again is the one that is described", () => {
  const leaks = (hours: number) => fills(hours) + 4 * hours;
  const before = three({ version: "1.0", fromDaysAgo: 9, toDaysAgo: 3, mib: fills });
  const leaking = three({ version: "1.1", fromDaysAgo: 3, toDaysAgo: 0.25, mib: leaks });
  const rolledBack = diagnosisOf([
    ...before,
    ...leaking,
    ...three({ version: "1.0", fromDaysAgo: 0.25, mib: fills }),
  ]);
  expect(rolledBack.verdict.kind).not.toBe("python-leak");
  expect(rolledBack.verdict.summary).toMatch(/^Version 1\.0 of shop/);
  expect(rolledBack.versions.at(-1)?.version).toBe("1.0");
  // Another new version may leak as well.
  const goneOn = diagnosisOf([
    ...before,
    ...leaking,
    ...three({ version: "1.2", fromDaysAgo: 0.25, mib: fills }),
  ]);
  expect(goneOn.verdict.summary).toMatch(/that version no longer runs, .* whether 1\.2 leaks/);
  // A version that leaked before the one in between does so after it.
  const still = diagnosisOf([
    ...before.map((life) => ({ ...life, mib: leaks })),
    ...leaking,
    ...three({ version: "1.0", fromDaysAgo: 0.25, mib: leaks }),
  ]);
  expect(still.verdict.kind).toBe("python-leak");
});

test("a line that shows a leak has its own rate, and the service that of its memory", () => {
  const lines = { imports: () => 90 };
  const { leak, suspects, verdict } = diagnosisOf([
    ...three({ version: "1.0", fromDaysAgo: 9, toDaysAgo: 1, mib: flat, lines }),
    ...three({
      ...{ version: "1.1", fromDaysAgo: 1, mib: (hours: number) => 1.5 * hours },
      lines: { ...lines, remember: (hours: number) => 0.5 * hours },
      bounds: { remember: 0 },
    }),
  ]);
  expect((leak?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(1.5, 0);
  expect((suspects[0]?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(0.5, 1);
  expect(suspects[0]?.share).toBeLessThan(0.5);
  expect(verdict.summary).toMatch(/^shop leaks 1\.\d+ MiB\/h on each instance since version 1\.1/);
});

test("a line that one of six watched instances has leaks there alone, in the first version as well", () => {
  // Bursts hide it in RSS.
  const bursts = (hours: number) => 80 * Math.sin(hours / 3) * Math.sin(hours / 11);
  const lives = [0, 1, 2, 3, 4, 5].map((instance) => ({
    ...{ instance, version: "1.0", fromDaysAgo: 6, mib: bursts },
    lines: {
      imports: () => 90,
      ...(instance === 3 ? { remember: (hours: number) => 0.5 * hours } : {}),
    },
    bounds: { remember: 0 },
  }));
  const { verdict } = diagnosisOf(lives);
  expect(verdict.summary).toMatch(/on instance app-3 alone .* allocated at remember/);
});

/** Six instances, the third of which leaks alone: at once, or from a version on. */
const oneLeaks = (from: string) =>
  diagnosisOf(
    [0, 1, 2, 3, 4, 5].flatMap((instance) => {
      const mib = (version: string) => (hours: number) =>
        fills(hours) + (instance === 2 && version >= from ? 4 * hours : 0);
      return [
        { instance, version: "1.0", fromDaysAgo: 6, toDaysAgo: 5.6, mib: mib("1.0") },
        { instance, version: "1.1", fromDaysAgo: 5.6, toDaysAgo: 5.2, mib: mib("1.1") },
        { instance, version: "1.2", fromDaysAgo: 5.2, mib: mib("1.2") },
      ];
    }),
  );

test("an instance that leaks alone does so since the first version in which it rose alike, whatever its siblings did", () => {
  expect(oneLeaks("1.0").leak).toMatchObject({ since: "1.0", version: "1.2" });
  expect(oneLeaks("1.0").change?.kind).not.toBe("growth");
  expect(oneLeaks("1.2").leak).toMatchObject({ since: "1.2", version: "1.2" });
  expect(oneLeaks("1.2").change).toMatchObject({ kind: "growth", version: "1.2" });
});
