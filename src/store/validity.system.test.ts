/** A figure that was read before a window counts in it as long as it is valid, in every kind of answer. */
import { expect, it } from "vitest";
import { environment } from "../../test/environment.js";
import type { StreamPlan } from "../recording/streams.fixture.js";
import type { Store } from "./index.js";
import type { SeriesQuery } from "./interface/store.js";
import { DAY, describeStores, HOUR, MIB, MINUTE, partOf, withStore } from "./stores.fixture.js";

/** Midnight. */
const START = Date.UTC(2026, 8, 10);
const MUCH = Number.MAX_SAFE_INTEGER;

describeStores(environment, (tested) => {
  let store: Store;
  withStore(tested, (opened) => {
    store = opened;
  });

  const give = (plan: StreamPlan) => store.write([partOf(plan)], 0);

  /** All kinds of answers over a window; 0 and []: there is no figure. */
  const answers = async (startMs: number, endMs: number) => {
    const window = { startMs, endMs };
    const all = { ...window, matchers: [] };
    const stepMs = endMs - startMs;
    const mib = (value: number | null | undefined) => Math.round((value ?? 0) / MIB);
    const series = async (name: SeriesQuery["name"], by: SeriesQuery["by"] = "none") => {
      const { groups } = await store.series({ ...window, service: "shop", name, by, stepMs });
      return mib(groups[0]?.values[0]);
    };
    const figure = async (figure: "liveBytes" | "liveObjects") =>
      (await store.figureSeries({ ...all, figure, groupBy: [], stepMs }))[0]?.values[0] ?? 0;
    const { snapshot } = await store.profile({ ...window, of: { service: "shop" }, mostStacks: 9 });
    return {
      rss: await series("rssBytes"),
      pss: await series("pssBytes"),
      ledger: await series("ledger", "part"),
      pages: await series("pages", "part"),
      devices: await series("deviceBytes"),
      requests: await series("requestsPerSecond"),
      profile: mib(snapshot.sites.liveBytes.reduce((sum, value) => sum + value, 0)),
      liveBytes: mib(await figure("liveBytes")),
      liveObjects: Math.round(await figure("liveObjects")) > 0,
      pods: await store.labelValues("team", all),
      names: (await store.labelNames(all)).includes("team"),
      instances: (await store.service("shop", window, 1))?.instances.length ?? 0,
    };
  };
  const NOTHING = {
    ...{ rss: 0, pss: 0, ledger: 0, pages: 0, devices: 0, requests: 0 },
    ...{ profile: 0, liveBytes: 0, liveObjects: false },
    ...{ pods: [], names: false, instances: 0 },
  };

  const plan = (some: Partial<StreamPlan>): StreamPlan => ({
    ...{ service: "shop", pid: 1, startedMs: START, labels: { team: "a" } },
    isProfiledItself: true,
    ...some,
  });
  /** The figures that are read once, so long after the start of a run. */
  const readAt = (afterMs: number): Partial<StreamPlan> => ({
    figures: {
      treePssBytes: [[afterMs, 5 * MIB]],
      "ledger.python.used": [[afterMs, 3 * MIB]],
      deviceBytes: [[afterMs, 4 * MIB]],
      anonRssBytes: [[afterMs, 8 * MIB]],
    },
    profiles: [[afterMs, `main;keep ${2 * MIB} objects=7 variance=1`]],
  });

  it("of a long run, whose rare figures are days old", async () => {
    // They are valid for 15 % of 100 days.
    const readMs = START + 100 * DAY;
    const rss = [0, 10, 16].map((days) => [(100 + days) * DAY, 9 * MIB] as const);
    await give(plan({ ...readAt(100 * DAY), rss }));
    const valid = { ...NOTHING, pss: 5, ledger: 3, profile: 2, liveBytes: 2, liveObjects: true };
    for (const days of [2, 10, 14]) {
      const startMs = readMs + days * DAY;
      const isPolled = days === 10;
      expect(await answers(startMs, startMs + 5 * MINUTE)).toEqual({
        ...{ ...valid, rss: isPolled ? 9 : 0, instances: isPolled ? 1 : 0 },
        ...{ pods: ["a"], names: true },
      });
    }
    const endMs = readMs + 16 * DAY;
    expect(await answers(endMs, endMs + 5 * MINUTE)).toEqual({ ...NOTHING, rss: 9, instances: 1 });
    const gauges = await store.versionGauges(readMs + 10 * DAY + MINUTE);
    expect(gauges).toMatchObject([
      { pssBytes: 5 * MIB, liveBytes: 2 * MIB, parts: { "python.used": 3 * MIB } },
    ]);
  });

  it("only until the program's end", async () => {
    const rss = [[10 * DAY, 9 * MIB]] as const;
    await give(plan({ ...readAt(10 * DAY), rss, endedAfterMs: 10 * DAY + HOUR }));
    const ended = START + 10 * DAY + HOUR;
    const before = { ...NOTHING, pss: 5, ledger: 3, profile: 2, liveBytes: 2, liveObjects: true };
    expect(await answers(ended - 10 * MINUTE, ended)).toEqual({
      ...{ ...before, pods: ["a"], names: true },
    });
    expect(await answers(ended, ended + HOUR)).toEqual(NOTHING);
  });

  it("days after a service stopped, as then", async () => {
    const rss = Array.from({ length: 60 }, (_, n) => [n * MINUTE, 9 * MIB] as const);
    await give(plan({ ...readAt(20 * MINUTE), rss }));
    const then = [START + 21 * MINUTE, START + 26 * MINUTE] as const;
    const asked = await answers(...then);
    expect(asked).toMatchObject({ rss: 9, pss: 5, profile: 2, pods: ["a"], instances: 1 });
    // Read once, a minute before: the mean is over the four of these five minutes in which they are valid.
    expect(asked).toMatchObject({ pages: 8, devices: 4 });
    // Others go on.
    for (const days of [1, 2]) {
      const startedMs = START + days * DAY;
      await give(plan({ service: "other", pid: 2, startedMs, rss, ...readAt(MINUTE) }));
    }
    expect(await answers(...then)).toEqual(asked);
    expect(await answers(START + 2 * DAY, START + 2 * DAY + HOUR)).toMatchObject({
      ...{ rss: 0, pss: 0, profile: 0, instances: 0 },
    });
  });

  it.each(["10m", "1h", "1d"] as const)("in the middle of a bucket of %s", async (tier) => {
    const every = (stepMs: number) =>
      Array.from({ length: (26 * HOUR) / stepMs }, (_, n) => n * stepMs);
    const profiles = every(5 * MINUTE).map(
      (ms) => [ms, `main;keep ${2 * MIB} variance=1`] as const,
    );
    const rss = every(2 * MINUTE).map((ms) => [ms, 9 * MIB] as const);
    const ended = { endedAfterMs: 26 * HOUR };
    const deviceBytes = every(2 * MINUTE).map((ms) => [ms, 4 * MIB] as const);
    const requestsPerSecond = every(2 * MINUTE).map((ms) => [ms, 7 * MIB] as const);
    await give(plan({ profiles, rss, figures: { deviceBytes, requestsPerSecond }, ...ended }));
    await give(plan({ service: "heap", pid: 3, importedFrom: "pprof", profiles, ...ended }));
    const [startMs, endMs] = [START + 13 * HOUR + 21 * MINUTE, START + 13 * HOUR + 28 * MINUTE];
    const { pods, names, ...before } = await answers(startMs, endMs);
    expect({ pods, names }).toEqual({ pods: ["a"], names: true });
    expect(before).toMatchObject({ rss: 9, devices: 4, requests: 7 });
    const heap = async () =>
      (await store.service("heap", { startMs, endMs }, 1))?.instances.map(({ source }) => source);
    expect(await heap()).toEqual(["pprof"]);
    const order = ["10m", "1h", "1d"] as const;
    const ages = { raw: 2 * DAY, "10m": MUCH, "1h": MUCH };
    for (const finer of order.slice(0, order.indexOf(tier)) as ("10m" | "1h")[]) {
      ages[finer] = 2 * DAY;
    }
    const pass = { keepMs: 4000 * DAY, mostBytes: MUCH, tiers: ages };
    expect((await store.retain(pass, START + 6 * DAY)).failed).toEqual([]);
    const { pods: podsNow, names: namesNow, ...now } = await answers(startMs, endMs);
    expect(now).toEqual({ ...before, liveObjects: now.liveObjects });
    // In the last one, labels of single programs are merged.
    const isMerged = tier === "1d";
    expect({ podsNow, namesNow }).toEqual({
      ...{ podsNow: isMerged ? [] : ["a"], namesNow: !isMerged },
    });
    const all = { startMs, endMs, matchers: [] };
    expect(await store.labelValues("service_name", all)).toEqual(["heap", "shop"]);
    if (!isMerged) {
      expect(await heap()).toEqual(["pprof"]);
    }
  });
});
