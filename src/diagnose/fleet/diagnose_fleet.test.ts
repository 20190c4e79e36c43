import { expect, test } from "vitest";
import { noise } from "../evidence/evidence.fixture.js";
import { diagnoseService } from "./diagnose_fleet.js";
import {
  DAY,
  diagnosisOf,
  END,
  flat,
  HOUR,
  type Life,
  MIB,
  OLD,
  processOf,
  three,
} from "./fleet_evidence.fixture.js";
import { processesForSites, processesToLookAt } from "./sites_wanted.js";

test("a leak since a version: version, rate, line and time to the limit", () => {
  const found = diagnosisOf([
    ...OLD,
    ...three({ version: "1.1", fromDaysAgo: 3, mib: (hours) => 2 * hours, withSites: true }),
  ]);
  expect(found.verdict.kind).toBe("python-leak");
  expect(found.change).toMatchObject({ kind: "growth", version: "1.1", against: "1.0" });
  const [, newest] = found.versions;
  expect((newest?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(2, 0);
  expect(newest?.low).toBeGreaterThan(0.5 * MIB);
  expect(found.suspects[0]?.line).toMatchObject({ file: "/srv/app/state.py", line: 41 });
  const first = found.forecast[0];
  expect((first?.msToLimit ?? 0) / HOUR).toBeGreaterThan(200);
  expect(first?.earliestMs).toBeLessThan(first?.msToLimit ?? 0);
  expect(found.verdict.summary).toContain("since version 1.1, allocated at remember (state.py:41)");
});

test("restarts do not hide a leak, and it is reported in every version", () => {
  const lives = [10, 8, 6, 4, 2].flatMap((from) =>
    three({
      version: from > 5 ? "1.0" : "1.1",
      fromDaysAgo: from,
      ...(from === 2 ? {} : { toDaysAgo: from - 2 }),
      mib: (hours) => 3 * hours,
    }),
  );
  const found = diagnosisOf(lives);
  expect(found.verdict.kind).toBe("python-leak");
  expect(found.verdict.summary).toContain("in every version since 1.0");
  expect(found.change).toBeUndefined();
});

test("a leak of a service that has ended is no longer stated as if it went on", () => {
  const ended = { version: "1.1", fromDaysAgo: 4, toDaysAgo: 1 };
  const found = diagnosisOf(three({ ...ended, mib: (hours) => 2 * hours }));
  expect(found.leak).toMatchObject({ affectedInstances: 0, runningInstances: 0 });
  expect(found.verdict.summary).toMatch(/^shop leaked .*; that version no longer runs\.$/);
  expect(found.forecast).toEqual([]);
});

test.each([
  ["steady", flat, "steady", undefined],
  ["a larger cache", (hours: number) => 150 * (1 - Math.exp(-hours / 9)), "cache-plateau", "level"],
  ["a bigger model", () => 200, "steady", "level"],
  ["warm-up", (hours: number) => 60 * (1 - Math.exp(-hours / 0.2)), "cache-plateau", undefined],
])("an innocent deploy is no regression: %s", (_name, mib, kind, change) => {
  const found = diagnosisOf([...OLD, ...three({ version: "1.1", fromDaysAgo: 3, mib })]);
  expect([kind, "warm-up", "steady"]).toContain(found.verdict.kind);
  expect(found.change?.kind).not.toBe("growth");
  if (change !== undefined) {
    expect(found.change).toMatchObject({ kind: change });
  }
});

test("the first hours of a cache and of a slow leak are not decided", () => {
  const found = diagnosisOf(three({ version: "1.1", fromDaysAgo: 0.3, mib: (hours) => 5 * hours }));
  expect(found.verdict.kind).toBe("insufficient-evidence");
  expect(found.limits.join(" ")).toContain("twice as long, usually decides");
});

/** Ran until the new version came, from 10 days ago. */
const before = (fromDaysAgo: number, mib: (hours: number) => number) => [
  ...OLD.map((life) => ({ ...life, toDaysAgo: fromDaysAgo, mib })),
];

test("a version that grows where the one before was level is reported once what lives for a day would be full", () => {
  const after = (days: number) =>
    diagnosisOf([
      ...before(days, flat),
      ...three({ version: "1.1", fromDaysAgo: days, mib: (hours) => 5 * hours }),
    ]);
  expect(after(1.1).verdict.kind).toBe("insufficient-evidence");
  const found = after(1.3);
  expect(found.verdict.kind).toBe("python-leak");
  expect(found.change).toMatchObject({ kind: "growth", version: "1.1", against: "1.0" });
  expect((found.leak?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(5, 0);
  expect(found.leak?.low).toBeGreaterThan(0);
});

test("growth in bursts, whose interval is wide, leaks once both halves of two days rise alike; what slows down does not", () => {
  const after = (mib: (hours: number) => number) =>
    diagnosisOf([
      ...before(2.5, flat),
      ...three({ version: "1.1", fromDaysAgo: 2.5, mib }).slice(0, 1),
    ]).verdict.kind;
  const bursts = (hours: number) => 6 * Math.sin(hours / 5) + 4 * Math.sin(hours / 2.2);
  expect(after((hours) => bursts(hours) + 3 * hours)).toBe("python-leak");
  const fills = (hours: number) => 160 * (1 - Math.exp(-hours / 20));
  expect(after((hours) => bursts(hours) + fills(hours))).not.toBe("python-leak");
});

test("a version that rises as the one before did at that age is not accused", () => {
  const fills = (hours: number) => 40 * Math.log1p(Math.min(hours, 40) / 8);
  const young = three({ version: "1.1", fromDaysAgo: 1.4, mib: (hours) => 2 * fills(hours) });
  expect(diagnosisOf([...before(1.4, fills), ...young]).verdict.kind).not.toBe("python-leak");
  // It does far more than that.
  const leaks = three({
    version: "1.1",
    fromDaysAgo: 1.4,
    mib: (hours) => fills(hours) + 6 * hours,
  });
  expect(diagnosisOf([...before(1.4, fills), ...leaks]).verdict.kind).toBe("python-leak");
});

test("one shard that leaks is named, and its siblings are not accused", () => {
  const found = diagnosisOf(
    Array.from({ length: 6 }, (_, instance) => ({
      instance,
      version: "1.0",
      fromDaysAgo: 4,
      mib: instance === 2 ? (hours: number) => 2 * hours : flat,
    })),
  );
  expect(found.verdict.kind).toBe("python-leak");
  expect(found.oddInstances.map(({ instance }) => instance)).toEqual(["app-2"]);
  expect(found.forecast.map(({ instance }) => instance)).toEqual(["app-2"]);
});

/** Restarted every day at the same hour, so that age and the hour of the day are the same. */
const daily = (life: Omit<Life, "fromDaysAgo">) =>
  [4, 3, 2, 1].map((fromDaysAgo) => ({
    ...life,
    fromDaysAgo,
    ...(fromDaysAgo === 1 ? {} : { toDaysAgo: fromDaysAgo - 1 }),
  }));

test("a version that is too young says how many instances it takes, and for how long", () => {
  const { needed, verdict, limits } = diagnosisOf([
    ...before(0.04, flat),
    ...three({ version: "1.1", fromDaysAgo: 0.04, mib: flat }).slice(0, 1),
  ]);
  expect(verdict.kind).toBe("insufficient-evidence");
  expect(needed).toMatchObject({ version: "1.1", share: 0.05, running: 1 });
  expect((needed?.ms ?? 0) / HOUR).toBeCloseTo(36, 0);
  expect(limits.join(" ")).toMatch(/Version 1\.1 runs on 1 instance, for .* can be decided with/);
  // That many instances for that long do decide.
  const days = ((needed?.ms ?? 0) + HOUR / 2) / DAY;
  const leaking = Array.from({ length: needed?.instances ?? 0 }, (_, instance) => ({
    ...{ instance, version: "1.1", fromDaysAgo: days },
    mib: (hours: number) => ((0.05 * 1024) / 24) * hours,
  }));
  expect(diagnosisOf([...before(days, flat), ...leaking]).verdict.kind).toBe("python-leak");
});

test("of versions that started at the same moment, the newest is that of the higher number", () => {
  const lives = ["1.10", "1.9"].map((version) => ({ version, instance: 0, fromDaysAgo: 0.04 }));
  for (const order of [lives, lives.toReversed()]) {
    const { verdict } = diagnosisOf(order.map((life) => ({ ...life, mib: flat })));
    expect(verdict.summary).toContain("Version 1.10 of");
  }
});

test("a leak that passes its limit soon is not cleared, nor is one that its line shows", () => {
  const warms = (hours: number) => 450 * (1 - Math.exp(-hours / 24));
  const fatal = diagnosisOf([
    ...before(16 / 24, warms),
    ...three({ version: "1.1", fromDaysAgo: 16 / 24, mib: (hours) => 36 * hours }),
  ]);
  expect(fatal.verdict.kind).toBe("python-leak");
  const fills = (hours: number) => 100 * (1 - Math.exp(-hours / 20));
  const shown = diagnosisOf([
    ...before(2, fills),
    ...three({
      ...{ version: "1.1", fromDaysAgo: 2, withSites: true },
      ...{
        mib: (hours: number) => fills(hours) + 0.9 * hours,
        siteMib: (hours: number) => 0.9 * hours,
      },
    }),
  ]);
  expect(shown.suspects[0]?.line.function).toBe("remember");
});

test("growth that began hours ago within a level week, and will pass the limit, is a leak", () => {
  const late = (mib: number) => (hours: number) => mib * Math.max(0, hours - (8 * 24 - 6.5));
  const of = (mib: number) =>
    diagnosisOf(three({ version: "1.0", fromDaysAgo: 8, mib: late(mib) })).versions[0];
  expect(of(60)).toMatchObject({ shape: "leaking" });
  expect(of(60)?.windowMs).toBeLessThan(7 * HOUR);
  // It rises by less than 8 % of the limit.
  expect(of(10)?.shape).not.toBe("leaking");
});

test("load that is not known is no early leak: a deploy before the morning", () => {
  const lives = (version: string, fromHours: number, toHours: number | null) =>
    three({
      version,
      fromDaysAgo: fromHours / 24,
      ...(toHours === null ? {} : { toDaysAgo: toHours / 24 }),
      mib: (hours) => (toHours === null ? 8 * hours : 0),
    });
  expect(diagnosisOf([...lives("1.0", 17, 7), ...lives("1.1", 7, null)]).verdict.kind).not.toBe(
    "python-leak",
  );
});

test("processes that end every day before their growth matters do not leak", () => {
  // At different hours, so that the load of the day is known.
  const lives = (mibAnHour: number) =>
    diagnosisOf(
      [0, 1, 2, 3, 4, 5].flatMap((instance) =>
        [6, 5, 4, 3, 2, 1, 0].map((day) => ({
          instance,
          version: "1.0",
          fromDaysAgo: day + instance / 6,
          ...(day === 0 ? {} : { toDaysAgo: day - 1 + instance / 6 }),
          mib: (hours: number) => mibAnHour * hours,
        })),
      ),
    ).verdict.kind;
  expect(lives(1.1)).not.toBe("python-leak");
  expect(lives(4)).toBe("python-leak");
});

test("one shard that leaks is named although all restart daily and fill a cache", () => {
  const fills = (hours: number) => 80 * (1 - Math.exp(-hours / 6));
  const found = diagnosisOf(
    Array.from({ length: 6 }, (_, instance) =>
      daily({
        instance,
        version: "1.0",
        mib: (hours) => fills(hours) + (instance === 2 ? 1.5 * hours : 0),
      }),
    ).flat(),
  );
  expect(found.oddInstances.map(({ instance }) => instance)).toEqual(["app-2"]);
  expect((found.oddInstances[0]?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(1.5, 0);
});

test("a leak that restarts and a cache hide in RSS is shown by its site", () => {
  const life = {
    version: "1.0",
    mib: (hours: number) => 80 * (1 - Math.exp(-hours / 6)) + 0.5 * hours,
    withSites: true,
  };
  const lives = (siteMib: (hours: number) => number) =>
    [0, 1, 2].flatMap((instance) => daily({ ...life, instance, siteMib }));
  const shown = diagnosisOf(lives((hours) => 0.5 * hours));
  expect(shown.verdict.kind).toBe("python-leak");
  expect(shown.suspects[0]?.line.function).toBe("remember");
  expect(shown.suspects[0]?.low).toBeGreaterThan(0);
  // The site of the cache slows down, and that of the load gives most of each rise back.
  for (const innocent of [
    (hours: number) => 80 * (1 - Math.exp(-hours / 6)),
    (hours: number) => hours + 20 * (1 - Math.cos((2 * Math.PI * hours) / 6)),
  ]) {
    expect(diagnosisOf(lives(innocent)).verdict.kind).not.toBe("python-leak");
  }
});

test("a rise that no site shows is not decided within days, unless it is much and straight", () => {
  const rising = (perHour: number) =>
    diagnosisOf([
      ...OLD,
      ...three({
        version: "1.1",
        fromDaysAgo: 3,
        mib: (hours) => perHour * hours,
        siteMib: () => 30,
        withSites: true,
      }),
    ]);
  expect(rising(0.3).verdict.kind).toBe("insufficient-evidence");
  expect(rising(2).verdict.kind).toBe("python-leak");
  expect(rising(2).suspects).toEqual([]);
});

test("a leak that follows the unknown requests is found", () => {
  // Three quarters of it by day.
  const byRequests = (hours: number) =>
    2 * (hours - (0.8 * DAY * Math.sin((2 * Math.PI * hours) / 24)) / (2 * Math.PI * HOUR));
  const found = diagnosisOf([
    ...OLD,
    ...three({ version: "1.1", fromDaysAgo: 3, mib: byRequests }),
  ]);
  expect(found.verdict.kind).toBe("python-leak");
  expect((found.leak?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(2, 0);
});

/** Three instances of a service for four days, that count their requests: 100 a second, three quarters of them by day. */
function withRequests(mib: (hours: number, requests: number, perSecond: number) => number) {
  const window = { startMs: END - 14 * DAY, endMs: END };
  const processes = three({ version: "1.0", fromDaysAgo: 4, mib: flat }).map((life, instance) => {
    const process = processOf(life);
    const { times } = process.rss;
    let served = 0;
    const rates: number[] = [];
    const values = times.map((time) => {
      const rate = 100 * (1 - 0.5 * Math.cos((2 * Math.PI * time) / DAY));
      served += rate * 600;
      rates.push(rate * (1 + 0.05 * noise(time / 7e4 + instance)));
      const hours = (time - process.startedMs) / HOUR;
      return MIB * (300 + mib(hours, served, rate) + noise(time / 6e4 + instance));
    });
    return { ...process, rss: { times, values }, requests: { times, values: rates } };
  });
  return diagnoseService({ service: "shop", window, processes }, 50);
}

test("memory that follows the requests is explained by them, by figures", () => {
  const found = withRequests((_hours, _requests, perSecond) => 0.6 * perSecond);
  expect(found.verdict.kind).toBe("steady");
  expect(found.verdict.summary).toMatch(
    /does not grow: its memory follows the request rate, by up to (5[0-9]|6[0-9])\.\d MiB/,
  );
});

test("growth by requests has its bytes per request, and growth by time has none", () => {
  const byRequests = withRequests((_hours, requests) => requests / 2 ** 20);
  expect(byRequests.verdict.kind).toBe("python-leak");
  expect(byRequests.leak?.bytesPerRequest).toBeGreaterThan(0.9);
  expect(byRequests.leak?.bytesPerRequest).toBeLessThan(1.1);
  expect(byRequests.verdict.summary).toMatch(/ on each instance, 1 B a request/);
  const byTime = withRequests((hours) => 2 * hours);
  expect(byTime.verdict.kind).toBe("python-leak");
  expect(byTime.leak?.bytesPerRequest).toBeUndefined();
});

test("sites are asked for where RSS may hide a leak, of the longest lives and of those before", () => {
  const wanted = (mib: (hours: number) => number, days = 3) => {
    const lives = three({ version: "1.1", fromDaysAgo: days, mib });
    const evidence = {
      service: "shop",
      window: { startMs: END - 14 * DAY, endMs: END },
      processes: [...OLD, ...lives, { ...(lives[0] as Life), fromDaysAgo: 0.1 }].map(processOf),
    };
    return processesForSites(evidence, diagnoseService(evidence, 50));
  };
  const before = ["1.0/0/10", "1.0/1/10", "1.0/2/10"];
  const own = ["1.1/0/3", "1.1/1/3", "1.1/2/3", "1.1/0/0.1"];
  expect(wanted((hours) => 0.2 * hours)).toEqual([...own, ...before]);
  // Two weeks of a level leave no room for a leak.
  const steady = Array.from({ length: 3 }, (_, instance) => ({
    ...{ instance, version: "1.0", fromDaysAgo: 14, mib: flat },
  }));
  const window = { startMs: END - 14 * DAY, endMs: END };
  const calm = { service: "shop", window, processes: steady.map(processOf) };
  expect(processesForSites(calm, diagnoseService(calm, 50))).toEqual([]);
});

test("sites are asked for where one instance rises ahead of its siblings, whose interval excludes a leak", () => {
  const lives = Array.from({ length: 6 }, (_, instance) => ({
    ...{ instance, version: "1.0", fromDaysAgo: instance === 4 ? 0.9 : 14 },
    mib: instance === 4 ? (hours: number) => 0.6 * hours + 20 : flat,
  }));
  const window = { startMs: END - 14 * DAY, endMs: END };
  const chosen = (some: readonly Life[]) => {
    const evidence = { service: "shop", window, processes: some.map(processOf) };
    const found = diagnoseService(evidence, 50);
    expect(found.leak).toBeUndefined();
    return processesForSites(evidence, found);
  };
  expect(chosen(lives)).toContain("1.0/4/0.9");
  expect(chosen(lives.filter(({ instance }) => instance !== 4))).toEqual([]);
});

/** Of five instances, one leaks and is killed at its limit every 20 hours; the others fill a cache. */
test("an instance that leaks alone is found although it is killed so often that most lives are its own", () => {
  const filling = (hours: number) => 60 * (1 - Math.exp(-hours / 12));
  const siblings = Array.from({ length: 4 }, (_, instance) => ({
    ...{ instance, version: "1.0", fromDaysAgo: 5, mib: filling },
  }));
  const killed = Array.from({ length: 6 }, (_, life) => ({
    ...{ instance: 4, version: "1.0", mib: (hours: number) => filling(hours) + 30 * hours },
    ...{
      fromDaysAgo: 5 - (life * 20) / 24,
      ...(life < 5 ? { toDaysAgo: 5 - ((life + 1) * 20) / 24 } : {}),
    },
  }));
  const found = diagnosisOf([...siblings, ...killed]);
  expect(found.verdict.summary).toContain("on instance app-4 alone");
});

test("the agent should look at two processes of a leak in an unknown line, which an hour of it then names", () => {
  const lives = three({ version: "1.1", fromDaysAgo: 3, mib: (hours) => 4 * hours });
  const window = { startMs: END - 14 * DAY, endMs: END };
  const processes = [...OLD, ...lives].map(processOf);
  const evidence = { service: "shop", window, processes };
  const found = diagnoseService(evidence, 50);
  expect(found.suspects).toEqual([]);
  const wanted = processesToLookAt(evidence, found);
  expect(wanted).toEqual(["1.1/0/3", "1.1/1/3"]);
  const seen = processes.map((each) => {
    // The agent sees only what was allocated after it was attached.
    const times = Array.from({ length: 11 }, (_, step) => END - HOUR + step * 360_000);
    const values = times.map((_, step) => (4 * MIB * step) / 10);
    const stack = [
      { function: "remember", file: "/srv/app/state.py", line: 41, kind: "python" as const },
    ];
    return wanted.includes(each.process)
      ? { ...each, sites: [{ stack, live: { times, values } }] }
      : each;
  });
  const named = diagnoseService({ ...evidence, processes: seen }, 50);
  expect(named.suspects).toMatchObject([{ line: { function: "remember", line: 41 } }]);
  expect(processesToLookAt({ ...evidence, processes: seen }, named)).toEqual([]);
  // Processes that are about to reach their limit are left alone.
  const full = processes.map((each) => ({
    ...each,
    limitBytes: 0.95 * (each.rss.values.at(-1) ?? 0),
  }));
  const dying = { ...evidence, processes: full };
  expect(processesToLookAt(dying, diagnoseService(dying, 50))).toEqual([]);
});

test("readings from before a start, and starts after the window, as clocks that were set leave them", () => {
  const lives = Array.from({ length: 4 }, (_, instance) => ({
    ...{ instance, version: "1.0", fromDaysAgo: 2 - 0.3 * instance, mib: flat },
  }));
  const processes = lives.map(processOf).map((each, at) => ({
    ...each,
    startedMs: each.startedMs + ([0, HOUR, 20 * HOUR, 5 * DAY][at] ?? 0),
  }));
  const window = { startMs: END - 14 * DAY, endMs: END };
  const found = diagnoseService({ service: "shop", window, processes }, 1);
  expect(JSON.stringify(found)).not.toContain("null"); // as NaN would be written
  expect(found.verdict.kind).not.toBe("python-leak");
});

test("without readings nothing is decided", () => {
  const [life] = OLD;
  const empty = { ...processOf(life as Life), rss: { times: [], values: [] } };
  const window = { startMs: END - DAY, endMs: END };
  for (const processes of [[], [empty]]) {
    const found = diagnoseService({ service: "shop", window, processes }, 1);
    expect(found.verdict.kind).toBe("insufficient-evidence");
    expect(found.versions).toEqual([]);
  }
});

test("a leak is a regression of its version, although the release before it ran for hours and filled its caches faster", () => {
  const filled = (hours: number) => 60 * (1 - Math.exp(-hours / 3));
  const found = diagnosisOf([
    ...three({ version: "1.0", fromDaysAgo: 8, toDaysAgo: 3.12, mib: flat }),
    ...three({ version: "1.1", fromDaysAgo: 3.12, toDaysAgo: 3, mib: (hours) => 15 * hours }),
    ...three({ version: "1.2", fromDaysAgo: 3, mib: (hours) => filled(hours) + 1.5 * hours }),
  ]);
  expect(found.leak?.since).toBe("1.2");
  expect(found.change).toMatchObject({ kind: "growth", version: "1.2", against: "1.0" });
});

test("in its first week, a service whose requests are unknown may need more on working days than on the weekend", () => {
  // From Friday to Wednesday.
  const from = 4.5;
  const mib = (hours: number) => {
    const time = END - from * DAY + hours * HOUR;
    const isWeekend = new Date(time).getUTCDay() % 6 === 0;
    const week = Math.max(0, Math.min(1, (time - Date.UTC(2026, 2, 22)) / (2.5 * DAY)));
    return 40 * week - (isWeekend ? 16 * (1 - Math.cos((2 * Math.PI * time) / DAY)) : 0);
  };
  const verdict = (rise: Life["mib"]) =>
    diagnosisOf(three({ version: "1.0", fromDaysAgo: from, mib: rise })).verdict.kind;
  expect(verdict(mib)).toBe("insufficient-evidence");
  expect(verdict((hours) => mib(hours) + 3 * hours)).toBe("python-leak");
  // All days are alike.
  expect(verdict((hours) => 0.6 * hours)).toBe("python-leak");
});

test("processes that are restarted every day leak after one such day if they rise far beyond the load of any earlier day", () => {
  const daily = (version: string, from: number, to: number, mib: Life["mib"]) =>
    Array.from({ length: Math.ceil(from - to) }, (_, day) => from - day).flatMap((days) =>
      three({ version, fromDaysAgo: days, ...(days > 1 ? { toDaysAgo: days - 0.995 } : {}), mib }),
    );
  const verdict = (rate: number) =>
    diagnosisOf([...daily("1.0", 7.3, 1.4, flat), ...daily("1.1", 1.3, 0, (hours) => rate * hours)])
      .verdict.kind;
  expect(verdict(5)).toBe("python-leak");
  expect(verdict(1)).not.toBe("python-leak");
});
