import { expect, test } from "vitest";
import { diagnosisOf, flat, type Life, MIB, three } from "../fleet_evidence.fixture.js";

type Lines = NonNullable<Life["lines"]>;

const imports = () => 90;
/** Ran for ten days until `hours` ago, as three instances with the agent. */
const before = (hours: number, lines: Lines) =>
  three({
    ...{ version: "1.0", fromDaysAgo: 10, toDaysAgo: hours / 24, lines },
    mib: sumOf(lines),
  });
const after = (hours: number, lines: Lines) =>
  three({ version: "1.1", fromDaysAgo: hours / 24, mib: sumOf(lines), lines });
/** RSS has what the lines hold beyond the imports. */
function sumOf(lines: Lines) {
  return (hours: number) =>
    Object.values(lines).reduce((sum, mibAt) => sum + mibAt(hours), 0) - imports();
}
const fills = (mib: number, fillHours: number) => (hours: number) =>
  mib * (1 - Math.exp(-hours / fillHours));
/** 10 % of the limit a day. */
const LEAK = (0.1 * 1024) / 24;
const leaks = (hours: number) => LEAK * hours;

/** A process found the container that holds the line. */
const withoutBound = (life: Life): Life => ({ ...life, bounds: { remember: 0 } });

test("a line that no earlier version had shows a leak of 10 % of the limit a day after two hours", () => {
  const lines = { imports, cached: fills(60, 6) };
  const found = diagnosisOf([
    ...before(2, lines),
    ...after(2, { ...lines, remember: leaks }).map(withoutBound),
  ]);
  expect(found.verdict.kind).toBe("python-leak");
  expect(found.change).toMatchObject({ kind: "growth", version: "1.1", against: "1.0" });
  expect(found.suspects[0]?.line.function).toBe("remember");
  const { growthBytesPerHour = 0, low = 0, affectedInstances } = found.leak ?? {};
  expect(growthBytesPerHour / MIB).toBeCloseTo(LEAK, 0);
  expect(low).toBeGreaterThan(0.5 * growthBytesPerHour);
  expect(affectedInstances).toBe(3);
  expect(found.limits.join(" ")).toContain("a slow cache that only this version has");
});

const served = (life: Life): Life => ({ ...life, requestsPerSecond: 20 });

test("where no process found the container of a new line, it leaks after six hours, or a day and a half if it is named after a cache", () => {
  const verdict = (name: string, hours: number) =>
    diagnosisOf(
      [...before(hours, { imports }), ...after(hours, { imports, [name]: leaks })].map(served),
    ).verdict.kind;
  expect(verdict("remember", 7)).toBe("python-leak");
  expect(verdict("cached_rows", 7)).not.toBe("python-leak");
  expect(verdict("cached_rows", 40)).toBe("python-leak");
});

test("where neither the container of a new line nor the requests are known, a day and a half decide", () => {
  // Requests become more through the day, so that the cache is straight for a day.
  const filled = (hours: number) => {
    const done = hours + 8 * (1 - Math.cos((2 * Math.PI * hours) / 30));
    return 100 * (1 - Math.exp(-done / 24));
  };
  const verdict = (line: (hours: number) => number, hours: number) =>
    diagnosisOf([...before(hours, { imports }), ...after(hours, { imports, remember: line })])
      .verdict.kind;
  for (const hours of [7, 12, 18, 24, 30, 40]) {
    expect([hours, verdict(filled, hours)]).not.toEqual([hours, "python-leak"]);
  }
  expect(verdict(leaks, 24)).not.toBe("python-leak");
  expect(verdict(leaks, 40)).toBe("python-leak");
});

test("a line without a bound that was straight leaks on while few requests let it grow slowly, and is none once it is full", () => {
  const verdict = (line: (hours: number) => number) =>
    diagnosisOf([
      ...before(24, { imports }),
      ...after(24, { imports, remember: line }).map(withoutBound),
    ]).verdict.kind;
  /** Fewer requests from the eighth hour on. */
  const slower = (share: number) => (hours: number) =>
    leaks(Math.min(hours, 8)) + share * leaks(Math.max(0, hours - 8));
  expect(verdict(slower(0.15))).toBe("python-leak");
  expect(verdict(slower(0))).not.toBe("python-leak");
});

test("where requests are known, a new line whose container no process found leaks once no cache of 20 hours bends so little", () => {
  const verdict = (line: (hours: number) => number) =>
    diagnosisOf([...before(5, { imports }), ...after(5, { imports, remember: line })].map(served))
      .verdict.kind;
  expect(verdict(leaks)).toBe("python-leak");
  expect(verdict(fills(100, 20))).not.toBe("python-leak");
});

test("within a day, a new line whose container no process found has to be straight over time and over requests", () => {
  /** The morning: a cache that fills by requests, and bends over these, is straight over time. */
  const morning = (hours: number) => 10 + 4 * hours;
  const done = (hours: number) => 10 * hours + 2 * hours ** 2;
  const fillsBy = (requests: number) => (hours: number) =>
    120 * (1 - Math.exp(-done(hours) / requests));
  const verdict = (line: (hours: number) => number, rate: Life["requestsPerSecond"]) =>
    diagnosisOf(
      [...before(9, { imports }), ...after(9, { imports, remember: line })].map((life) => ({
        ...life,
        requestsPerSecond: life.version === "1.0" ? 20 : (rate ?? 20),
      })),
    ).verdict.kind;
  expect(verdict(fillsBy(270), morning)).not.toBe("python-leak");
  expect(verdict(leaks, 20)).toBe("python-leak");
});

test("in the first version, a line without a bound leaks within hours if requests are known and the limit is a week away", () => {
  const verdict = (line: (hours: number) => number, change: (life: Life) => Life) =>
    diagnosisOf(after(5, { imports, remember: line }).map(change)).verdict.kind;
  const open = (life: Life) => served(withoutBound(life));
  const fast = (hours: number) => 3 * leaks(hours);
  expect(verdict(fast, open)).toBe("python-leak");
  expect(verdict(fills(300, 20), open)).not.toBe("python-leak");
  expect(verdict((hours) => leaks(hours) / 2, open)).not.toBe("python-leak");
  expect(verdict(fast, served)).not.toBe("python-leak");
  expect(verdict(fast, withoutBound)).not.toBe("python-leak");
});

test("growth of RSS is that of a cache if the line that explains it has clearly slowed down", () => {
  const verdict = (line: (hours: number) => number) => {
    const rss = (hours: number) => 2 * hours;
    const lines = { imports, stored: line };
    const now = three({ version: "1.1", fromDaysAgo: 44 / 24, mib: rss, lines });
    return diagnosisOf([...before(44, { imports }), ...now]).verdict.kind;
  };
  expect(verdict((hours) => 2 * hours)).toBe("python-leak");
  expect(verdict(fills(90, 15))).not.toBe("python-leak");
});

test("the same leak is not decided after two hours where the agent saw no earlier version", () => {
  const lines = { imports, cached: fills(60, 6) };
  const unseen = before(2, lines).map(({ lines: _, ...life }) => life);
  const found = diagnosisOf([...unseen, ...after(2, { ...lines, remember: leaks })]);
  expect(found.verdict.kind).not.toBe("python-leak");
});

test.each<[string, Lines, Lines]>([
  ["a cache that is three times as large", { cached: fills(40, 12) }, { cached: fills(120, 12) }],
  ["a cache that is new and fills in three hours", {}, { cached: fills(80, 3) }],
  ["memory of a new line for the load", {}, { work: () => 40 }],
  ["a slow cache under a new name", { cached: fills(150, 48) }, { stored: fills(160, 48) }],
])("an innocent deploy is not accused by its lines within hours: %s", (_name, old, now) => {
  for (const hours of [2, 3, 4, 6]) {
    const found = diagnosisOf([
      ...before(hours, { imports, ...old }),
      ...after(hours, { imports, ...now }),
    ]);
    expect([hours, found.verdict.kind]).not.toEqual([hours, "python-leak"]);
  }
});

test("a cache that is new and knows its bound is not accused by its line, however slowly it fills", () => {
  const verdict = (bound: number, hours: number) =>
    diagnosisOf([
      ...before(hours, { imports }),
      ...after(hours, { imports, stored: fills(250, 40) }).map((life) => ({
        ...life,
        bounds: { stored: bound },
      })),
    ]).verdict.kind;
  expect(verdict(0, 3)).toBe("python-leak");
  for (const hours of [3, 9, 24, 40]) {
    expect([hours, verdict(10_000, hours)]).not.toEqual([hours, "python-leak"]);
  }
});

test("the leak of a new line began with its version, although RSS of the one before grew alike", () => {
  const lines = (slow: number): Lines => ({
    imports,
    cached: (hours) => slow * Math.min(hours, 9),
  });
  const version = (name: string, from: number, to: number | null, all: Lines) =>
    three({
      ...{ version: name, fromDaysAgo: from / 24, mib: sumOf(all), lines: all },
      ...(to === null ? {} : { toDaysAgo: to / 24 }),
    });
  const found = diagnosisOf([
    ...version("1.0", 240, 14, lines(4)),
    ...version("1.1", 14, 6, lines(4.3)),
    ...version("1.2", 6, null, { imports, remember: leaks, cached: () => 36 }).map(withoutBound),
  ]);
  expect(found.versions.map(({ shape }) => shape)).toEqual(["flat", "undecided", "leaking"]);
  expect(found.leak).toMatchObject({ version: "1.2", since: "1.2" });
});

test("a new line on one of the instances that the agent watches leaks there alone", () => {
  const six = (life: Omit<Life, "instance">, leaking: number | null) =>
    [0, 1, 2, 3, 4, 5].map((instance) => {
      const lines: Lines = { imports, ...(instance === leaking ? { remember: leaks } : {}) };
      return { ...life, instance, lines, mib: sumOf(lines) };
    });
  const found = diagnosisOf([
    ...six({ version: "1.0", fromDaysAgo: 10, toDaysAgo: 3 / 24, mib: flat }, null),
    ...six({ version: "1.1", fromDaysAgo: 3 / 24, mib: flat }, 4).map(withoutBound),
  ]);
  expect(found.oddInstances.map(({ instance }) => instance)).toEqual(["app-4"]);
  expect(found.leak).toMatchObject({ affectedInstances: 1, runningInstances: 6 });
  expect(found.suspects[0]?.line.function).toBe("remember");
});

test("a leak by requests in processes that end every night is found by its line", () => {
  // 3 % of the limit a day, most of it by day.
  const byRequests = (hours: number) =>
    1.28 * (hours - (0.5 * 24 * Math.sin((2 * Math.PI * hours) / 24)) / (2 * Math.PI));
  const daily = (version: string, days: readonly number[], lines: Lines) =>
    days.flatMap((from) =>
      three({
        ...{ version, fromDaysAgo: from, lines, mib: sumOf(lines) },
        ...(from <= 1 ? {} : { toDaysAgo: from - 1 }),
      }),
    );
  const lines = { imports, cached: fills(60, 6) };
  const found = diagnosisOf([
    ...daily("1.0", [7, 6, 5, 4, 3], lines),
    ...daily("1.1", [2, 1], { ...lines, remember: byRequests }),
  ]);
  expect(found.suspects[0]?.line.function).toBe("remember");
  expect(found.change).toMatchObject({ kind: "growth", version: "1.1" });
});

test("a new line that slows down over days is a cache, however long it still rises", () => {
  // By the logarithm of age, as a cache of keys that become rarer.
  const slows = (hours: number) => 12 * Math.log(1 + hours / 4);
  for (const hours of [24, 48, 96]) {
    const found = diagnosisOf([
      ...before(hours, { imports }),
      ...after(hours, { imports, stored: slows }),
    ]);
    expect([hours, found.verdict.kind]).not.toEqual([hours, "python-leak"]);
  }
  const steady = diagnosisOf([
    ...before(48, { imports }),
    ...after(48, { imports, remember: leaks }),
  ]);
  expect(steady.verdict.kind).toBe("python-leak");
});

test("a cache with more room is not accused by the rate at which it fills, even if that would pass the limit", () => {
  const fillsFast = (mib: number) => (hours: number) => Math.min(mib, 100 * hours);
  const lines = (mib: number): Lines => ({ imports, cached: fillsFast(mib) });
  const found = diagnosisOf([...before(2.5, lines(100)), ...after(2.5, lines(300))]);
  expect(found.verdict.kind).not.toBe("python-leak");
});
