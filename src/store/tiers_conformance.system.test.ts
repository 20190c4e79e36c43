/** Coarser tiers give the same answers as the raw data did, within what their buckets mean. */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, it } from "vitest";
import { environment } from "../../test/environment.js";
import { present } from "../model/base/present.js";
import { frameName, framesOf } from "../model/profile/frame_text.js";
import type { StreamPlan } from "../recording/streams.fixture.js";
import type { Retention, Store } from "./index.js";
import { DAY, describeStores, HOUR, MIB, MINUTE, partOf, withStore } from "./stores.fixture.js";

/** Midnight. */
const START = Date.UTC(2026, 8, 10);
const MUCH = Number.MAX_SAFE_INTEGER;
const ALL = { startMs: START - DAY, endMs: START + 3 * DAY };

/** All days older than two days are of this tier. */
function retention(tier: "raw" | "10m" | "1h" | "1d", some: Partial<Retention> = {}): Retention {
  const order = ["raw", "10m", "1h"] as const;
  const at = order.indexOf(tier as (typeof order)[number]);
  const ages = order.map((name, n) => [name, at < 0 || n < at ? 2 * DAY : MUCH] as const);
  return {
    keepMs: 4000 * DAY,
    mostBytes: MUCH,
    tiers: Object.fromEntries(ages) as Retention["tiers"],
    ...some,
  };
}

/** An expectation of the same, but for rounding. `digits` of instances. */
function like(value: unknown, digits = 3): unknown {
  if (typeof value === "number") {
    return expect.closeTo(value, Math.abs(value) > 1e6 ? 0 : 3);
  }
  if (Array.isArray(value)) {
    return value.map((each) => like(each));
  }
  return typeof value === "object" && value !== null
    ? Object.fromEntries(
        Object.entries(value).map(([key, each]) => [
          key,
          key === "instances" ? expect.closeTo(each as number, digits) : like(each, digits),
        ]),
      )
    : value;
}

/** Three programs: one grows, one changes little and crosses midnight, one lives for 7 minutes. */
const PLANS: readonly StreamPlan[] = [
  {
    service: "shop",
    version: "41",
    pid: 1,
    startedMs: START + 5 * HOUR + 3 * MINUTE,
    rss: Array.from({ length: 300 }, (_, n) => [n * 2 * MINUTE, (100 + n) * MIB] as const),
    profiles: Array.from(
      { length: 40 },
      (_, n) =>
        [
          n * 13 * MINUTE + 17_000,
          `main;load ${(10 + n) * MIB} allocated=${(11 + 2 * n) * MIB} variance=1\nmain;f${n % 3} ${MIB} allocated=${(n + 1) * MIB} variance=1`,
        ] as const,
    ),
    endedAfterMs: 10 * HOUR + 30_000,
  },
  {
    service: "shop",
    version: "42",
    pid: 2,
    startedMs: START + 20 * HOUR + 7 * MINUTE,
    rss: Array.from({ length: 500 }, (_, n) => [n * MINUTE, 70 * MIB + n] as const),
    profiles: Array.from(
      { length: 30 },
      (_, n) =>
        [
          n * 16 * MINUTE,
          `main;keep ${20 * MIB + n} allocated=${30 * MIB + n * 1000} variance=1000000000000`,
        ] as const,
    ),
  },
  {
    service: "shop",
    version: "42",
    pid: 3,
    startedMs: START + 7 * HOUR + 1,
    rss: [
      [0, 5 * MIB],
      [3 * MINUTE, 900 * MIB],
      [4 * MINUTE, 6 * MIB],
    ],
    profiles: [[90_001, `main;brief ${3 * MIB} allocated=${4 * MIB} variance=1`]],
    endedAfterMs: 7 * MINUTE,
  },
];

describeStores(environment, (tested) => {
  const { name, days, isRolling } = tested;
  let folder: string;
  let store: Store;
  const open = withStore(tested, (opened, place) => {
    [store, folder] = [opened, place];
  });

  const give = async (plan: StreamPlan, until = MUCH): Promise<string> => {
    const { stream, items: all } = partOf(plan);
    const items = all.slice(0, until);
    await store.write([{ stream, items, endOffset: present(items.at(-1)).endOffset }], 0);
    return stream;
  };

  /** Everything that does not depend on the tier, over a window. */
  const answers = async (window: { startMs: number; endMs: number }, stepMs: number) => {
    const stacks = async (version?: string) => {
      const of = { service: "shop", ...(version === undefined ? {} : { version }) };
      const { tables, snapshot, instances } = await store.profile({
        ...window,
        of,
        mostStacks: 1000,
      });
      const rows = Array.from(snapshot.sites.stack, (stack, row) => [
        frameName(tables, present(framesOf(tables, stack)[0])),
        snapshot.sites.liveBytes[row] ?? 0,
        snapshot.sites.allocatedBytes[row] ?? 0,
      ]);
      return { rows: rows.sort(), instances };
    };
    const series = async (name: "rssBytes", by: "none" | "version" | "instance") => {
      const query = { ...window, service: "shop", name, by, stepMs };
      const { groups } = await store.series(query);
      return groups.map(({ group, values }) => [group, values]);
    };
    const figures = async (figure: "liveBytes" | "allocatedBytes" | "allocatedObjects") => {
      const query = { ...window, matchers: [], figure, groupBy: ["version"], stepMs };
      const groups = await store.figureSeries(query);
      return groups.map(({ group, values }) => [
        group,
        // A step without a reading, and one whose readings are 0.
        values.map((value) => value ?? 0),
      ]);
    };
    const { services } = await store.services(window, 4);
    return {
      all: await stacks(),
      of41: await stacks("41"),
      rss: await series("rssBytes", "none"),
      rssByVersion: await series("rssBytes", "version"),
      rssByInstance: await series("rssBytes", "instance"),
      live: await figures("liveBytes"),
      allocated: await figures("allocatedBytes"),
      allocatedObjects: await figures("allocatedObjects"),
      services: services.map(({ service, instances, endedInstances, silentInstances }) => [
        service,
        instances + endedInstances + silentInstances,
      ]),
      peaks: (await store.service("shop", window, 4))?.instances
        .map(({ peakRssBytes }) => peakRssBytes)
        .sort(),
    };
  };

  const later = START + 6 * DAY;

  it.each([
    ["10m", 10 * MINUTE],
    ["1h", HOUR],
    ["1d", DAY],
  ] as const)("of %s give the answers of raw data", async (tier, stepMs) => {
    for (const plan of PLANS) {
      await give(plan);
    }
    const windows = [ALL, { startMs: START, endMs: START + DAY }];
    const before = [];
    for (const window of windows) {
      before.push(await answers(window, stepMs));
    }
    const { rolled, removed } = await store.retain(retention(tier), later);
    expect(removed).toEqual([]);
    expect(rolled).toEqual([
      { day: "2026-09-10", tier },
      { day: "2026-09-11", tier },
    ]);
    for (const [at, window] of windows.entries()) {
      expect(await answers(window, stepMs)).toEqual(like(before[at]));
    }
    expect((await store.service("shop", ALL, 4))?.limits).toEqual([
      expect.stringMatching(/^Until 2026-09-11, figures are means of (10 minutes|an hour|a day)/),
    ]);
    // Nothing is left to do, and a restart changes nothing.
    expect((await store.retain(retention(tier), later)).rolled).toEqual([]);
    await store.close();
    await open();
    expect(await days(folder)).toEqual([`2026-09-10.${tier}`, `2026-09-11.${tier}`]);
    for (const [at, window] of windows.entries()) {
      expect(await answers(window, stepMs)).toEqual(like(before[at]));
    }
  });

  it("move from one to the next without a change", async () => {
    for (const plan of PLANS) {
      await give(plan);
    }
    const before = await answers(ALL, DAY);
    for (const tier of ["10m", "1h", "1d"] as const) {
      expect((await store.retain(retention(tier), later)).rolled).toHaveLength(2);
      expect(await answers(ALL, DAY)).toEqual(like(before));
    }
  });

  it.each(["10m", "1h", "1d"] as const)("of %s take data that arrives late", async (tier) => {
    const whole = await (async () => {
      for (const plan of PLANS) {
        await give(plan);
      }
      const result = await answers(ALL, DAY);
      await store.close();
      await tested.remove(folder);
      await open();
      return result;
    })();
    await give(present(PLANS[0]));
    await give(present(PLANS[1]), 12);
    await store.retain(retention(tier), later);
    await give(present(PLANS[1]));
    await give(present(PLANS[2]));
    // The time between the merged and the late part of a program is not part of either.
    expect(await answers(ALL, DAY)).toEqual(like(whole, 2));
    // It moves on with the rest.
    await store.retain(retention("1d"), later);
    expect(await answers(ALL, DAY)).toEqual(like(whole, 2));
  });

  it("shrink from the finest when the disk is short, and the oldest day goes last", async () => {
    const stacks = Array.from({ length: 400 }, (_, at) => at);
    for (const [pid, day] of [0, 1, 2].entries()) {
      await give({
        service: "shop",
        pid: pid + 1,
        startedMs: START + day * DAY,
        profiles: Array.from(
          { length: 120 },
          (_, n) =>
            [
              n * MINUTE,
              stacks
                .map((at) => `main;f${at} ${(at * 7919 + n * 104729) % 1e6} variance=1`)
                .join("\n"),
            ] as const,
        ),
      });
    }
    const total = async () => {
      const { snapshot } = await store.profile({ ...ALL, of: [], mostStacks: 1000 });
      return snapshot.sites.liveBytes.reduce((sum, value) => sum + value, 0);
    };
    await store.retain(retention("raw"), START + 4 * DAY);
    const [{ bytes }, before] = [await store.use(), await total()];
    const step = await store.retain(retention("raw", { mostBytes: bytes - 1 }), START + 2 * DAY);
    expect(step).toEqual({
      ...{ removed: [], failed: [], notSwept: null },
      rolled: [{ day: "2026-09-10", tier: "10m" }],
    });
    expect((await store.use()).bytes).toBeLessThan(bytes);
    expect(await total()).toBeCloseTo(before, 0);
    const much = await store.retain(retention("raw", { mostBytes: 1 }), START + 2 * DAY);
    expect(much.rolled.map(({ day, tier }) => `${day} ${tier}`)).toEqual([
      "2026-09-11 10m",
      "2026-09-10 1h",
      "2026-09-11 1h",
      "2026-09-10 1d",
      "2026-09-11 1d",
    ]);
    expect(much.removed).toEqual(["2026-09-10", "2026-09-11"]);
    // The newest day is not touched.
    expect(await days(folder)).toEqual(["2026-09-12"]);
  });

  /** Three raw days, and a pass of retention that is rolling up the first of them because the store is too large. */
  const passUnderWay = async () => {
    for (const [at, plan] of PLANS.entries()) {
      await give({ ...plan, startedMs: START + at * DAY, endedAfterMs: 11 * HOUR });
    }
    const pass = store.retain(retention("raw", { mostBytes: 1 }), START + 2 * DAY);
    while (!isRolling(folder)) {
      await new Promise((resume) => setImmediate(resume));
    }
    return { pass };
  };
  const DAYS = ["2026-09-10", "2026-09-11", "2026-09-12"];

  it("lose no day when the store is closed during a pass", async () => {
    const { pass } = await passUnderWay();
    await store.close();
    expect(await pass).toEqual({ removed: [], rolled: [], failed: [], notSwept: null });
    await open();
    expect(await days(folder)).toEqual(DAYS);
  });

  it("lose no day when rows arrive during a pass", async () => {
    const { pass } = await passUnderWay();
    await give({ service: "late", pid: 9, startedMs: START + HOUR, rss: [[0, MIB]] });
    expect(await pass).toEqual({ removed: [], rolled: [], failed: [], notSwept: null });
    expect(await days(folder)).toEqual(DAYS);
  });

  it("take rows of a day that was rolled up and removed in one pass", async () => {
    for (const [at, plan] of PLANS.entries()) {
      await give({ ...plan, startedMs: START + at * DAY, endedAfterMs: 11 * HOUR });
    }
    const pass = await store.retain(retention("raw", { mostBytes: 1 }), START + 2 * DAY);
    expect(pass.removed).toContain("2026-09-10");
    const late = { service: "late", pid: 9, startedMs: START + HOUR, rss: [[0, MIB]] } as const;
    await give(late);
    await store.retain(retention("raw"), START + 2 * DAY);
    await store.close();
    await open();
    expect(await days(folder)).toContain("2026-09-10");
    expect((await store.service("late", ALL, 4))?.instances).toHaveLength(1);
  });

  it("end when the program does: figures that stay valid for longer do not count", async () => {
    const stream = await give({
      ...{ service: "shop", pid: 7, startedMs: START },
      rss: Array.from({ length: 300 }, (_, n) => [n * 2 * MINUTE, 100 * MIB] as const),
    });
    const seen = async () => present(await store.instance(stream)).lastSeenMs;
    const before = await seen();
    for (const tier of ["10m", "1h", "1d"] as const) {
      await store.retain(retention(tier), later);
      expect(Math.abs((await seen()) - before)).toBeLessThanOrEqual(5 * MINUTE);
    }
  });

  // These are about files.
  if (name !== "duckdb") {
    return;
  }

  it("report a day that could not be rolled up, and go on with the size", async () => {
    for (const plan of PLANS) {
      await give(plan);
    }
    const obstacle = join(folder, "days", "2026-09-10.10m.unfinished");
    mkdirSync(obstacle);
    const { removed, rolled, failed } = await store.retain(
      retention("10m", { mostBytes: 1 }),
      later,
    );
    rmSync(obstacle, { recursive: true });
    expect(failed).toEqual([{ day: "2026-09-10", reason: expect.stringMatching(/unfinished/) }]);
    expect(rolled).toEqual([{ day: "2026-09-11", tier: "10m" }]);
    expect(removed).toEqual(["2026-09-10"]);
  });

  it("keep rows that arrive after a coarser file could not be used", async () => {
    const [first, second, third] = PLANS;
    await give(present(first));
    const obstacle = join(folder, "days", "2026-09-10.10m.duckdb.wal");
    mkdirSync(obstacle);
    expect(await store.retain(retention("10m"), later)).toMatchObject({
      rolled: [],
      failed: [{ day: "2026-09-10" }],
    });
    rmSync(obstacle, { recursive: true });
    expect(await days(folder)).toEqual(["2026-09-10"]);
    await give(present(second));
    await give(present(third));
    const before = await answers(ALL, DAY);
    await store.close();
    await open();
    expect(await answers(ALL, DAY)).toEqual(like(before));
    expect((await store.retain(retention("10m"), later)).rolled).toHaveLength(2);
    expect(await answers(ALL, DAY)).toEqual(like(before));
  });

  it("use what a crash left, once", async () => {
    for (const plan of PLANS) {
      await give(plan);
    }
    await store.close();
    const raw = join(folder, "days", "2026-09-10.duckdb");
    const copy = join(folder, "copy");
    copyFileSync(raw, copy);
    await open();
    const before = await answers(ALL, DAY);
    await store.retain(retention("1h"), later);
    await store.close();
    // The crash came after the coarser file was complete, and another one while a file was being made.
    copyFileSync(copy, raw);
    writeFileSync(join(folder, "days", "2026-09-11.1d.unfinished"), "half");
    mkdirSync(join(folder, "days", "2026-09-10.1d.unfinished", "odd"), { recursive: true });
    await open();
    expect(await days(folder)).toEqual(["2026-09-10.1h", "2026-09-11.1h"]);
    expect(await answers(ALL, DAY)).toEqual(like(before));
  });

  it("take rows of a day whose file was made just before a crash", async () => {
    await store.close();
    const instance = await DuckDBInstance.create(join(folder, "days", "2026-09-10.duckdb"));
    const connection = await instance.connect();
    await connection.run(
      "CREATE TABLE metrics (series_id UBIGINT, ts_ms BIGINT, name VARCHAR, value DOUBLE)",
    );
    connection.closeSync();
    instance.closeSync();
    await open();
    for (const plan of PLANS) {
      await give(plan);
    }
    const { snapshot } = await store.profile({
      ...ALL,
      of: { service: "shop" },
      mostStacks: 100,
    });
    expect(snapshot.sites.length).toBeGreaterThan(0);
  });

  it("are added to a folder of the version without them", async () => {
    for (const plan of PLANS) {
      await give(plan);
    }
    const before = await answers(ALL, DAY);
    await store.close();
    const version = async (sql: string) => {
      const instance = await DuckDBInstance.create(join(folder, "meta.duckdb"));
      const connection = await instance.connect();
      const [row] = (await connection.runAndReadAll(sql)).getRows();
      connection.closeSync();
      instance.closeSync();
      return row?.[0];
    };
    await version("UPDATE about SET version = 1");
    await open();
    expect(await answers(ALL, DAY)).toEqual(like(before));
    await store.retain(retention("10m"), later);
    expect(await answers(ALL, DAY)).toEqual(like(before));
    await store.close();
    expect(await version("SELECT version FROM about")).toBe(2);
    await open();
  });
});
