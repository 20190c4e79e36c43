/** A store that keeps sums answers like one that has just been opened, whatever changed meanwhile. */
import { expect, it, vi } from "vitest";
import { environment } from "../../test/environment.js";
import { frameName, framesOf } from "../model/profile/frame_text.js";
import type { StreamPlan } from "../recording/streams.fixture.js";
import { KeptSums } from "./duckdb/kept/kept_sums.js";
import type { ProfileQuery, Retention, Store } from "./index.js";
import type { Window } from "./interface/window.js";
import { DAY, describeStores, HOUR, MIB, MINUTE, partOf, withStore } from "./stores.fixture.js";

const STEPS = 12;
const rounded = (value: number | null) => (value === null ? null : Math.round(value));
/** Midnight. */
const START = Date.UTC(2026, 8, 10);
const MUCH = Number.MAX_SAFE_INTEGER;

const QUERIES: readonly ProfileQuery[] = [
  { of: { service: "shop" }, startMs: START - DAY, endMs: START + 6 * DAY, mostStacks: 100 },
  {
    of: { service: "shop" },
    startMs: START + 5 * HOUR + 17 * MINUTE + 1,
    endMs: START + 3 * DAY + 9 * HOUR + 23 * MINUTE,
    mostStacks: 1,
  },
  {
    of: { service: "shop", version: "2" },
    startMs: START + 30 * HOUR,
    endMs: START + 37 * HOUR,
    mostStacks: 100,
  },
  {
    of: [{ name: "pod", operator: "=~", value: ".*" }],
    startMs: START + HOUR / 2,
    endMs: START + 4 * DAY,
    mostStacks: 100,
  },
];

const plan = (pid: number, some: Partial<StreamPlan> = {}): StreamPlan => ({
  service: "shop",
  version: String(pid),
  pid,
  startedMs: START + pid * HOUR,
  profiles: Array.from({ length: 80 }, (_, n) => [
    n * HOUR,
    `main;f${pid} ${(10 + n) * MIB} allocated=${(11 + 2 * n) * MIB} variance=1\nmain;f${n % 5} ${MIB} allocated=${(n + 1) * MIB} variance=1`,
  ]),
  // With a gap of an hour in every ten.
  rss: Array.from(
    { length: 1200 },
    (_, n) => [n * 4 * MINUTE, (20 + (n % 50)) * MIB] as const,
  ).filter(([ms]) => ms % (10 * HOUR) >= HOUR),
  ...some,
});

const retention = (some: Partial<Retention>): Retention => ({
  keepMs: 4000 * DAY,
  mostBytes: MUCH,
  tiers: { raw: MUCH, "10m": MUCH, "1h": MUCH },
  ...some,
});

describeStores(environment, (tested) => {
  let store: Store;
  const open = withStore(tested, (opened) => {
    store = opened;
  });

  async function answers() {
    const all = [];
    for (const query of QUERIES) {
      const { tables, snapshot, otherStacks, profiles, instances } = await store.profile(query);
      const { sites } = snapshot;
      const rows = Array.from(sites.stack, (stack, at) => [
        Array.from(framesOf(tables, stack), (frame) => frameName(tables, frame)).join(" "),
        Math.round(sites.liveBytes[at] ?? 0),
        Math.round(sites.allocatedBytes[at] ?? 0),
      ]);
      all.push({ rows, otherStacks, profiles, instances: instances.toFixed(6) });
      const { services } = await store.services(query, STEPS);
      const shop = await store.service("shop", query, STEPS);
      all.push({
        services: services.map((row) => ({ ...row, sparkline: row.sparkline.map(rounded) })),
        instances: shop?.instances,
      });
    }
    return all;
  }

  /** The list of services with the course of RSS that a chart of the same steps has. */
  async function sparkline(window: Window) {
    const { services } = await store.services(window, STEPS);
    const stepMs = (window.endMs - window.startMs) / STEPS;
    const chart = { service: "shop", name: "rssBytes", by: "none", stepMs } as const;
    const { groups } = await store.series({ ...window, ...chart });
    const shown = services[0]?.sparkline.map(rounded);
    expect(shown).toEqual(groups[0]?.values.map(rounded));
    return shown;
  }

  /** The answers of the open store, which has answered before, and those after a restart. */
  async function compared() {
    const warm = await answers();
    await store.close();
    await open();
    const cold = await answers();
    expect(warm).toEqual(cold);
    return JSON.stringify(warm);
  }

  it("after late rows, the end of a program, roll-ups and removals", async () => {
    const seen = new Set<string>();
    const changed = async () => {
      const now = await compared();
      expect(seen).not.toContain(now);
      seen.add(now);
    };
    await store.write([partOf(plan(1))], 0);
    await changed();
    // A process that ran at the same time, but is sent later.
    await store.write([partOf(plan(2))], 0);
    await changed();
    // Profiles of a stream that the store knows, in two parts; then its end, which shortens the last one. No restart between them: it forgets the stream.
    const { stream, items } = partOf(plan(3, { endedAfterMs: 79 * HOUR + MINUTE }));
    const [half, end] = [
      Math.floor(items.length / 2),
      items.findIndex(({ kind }) => kind === "end"),
    ];
    for (const [from, to] of [
      [0, half],
      [half, end],
      [end, items.length],
    ] as const) {
      const part = items.slice(from, to);
      await store.write([{ stream, items: part, endOffset: part.at(-1)?.endOffset ?? 0 }], 0);
      await answers();
    }
    await changed();
    await store.retain(retention({ tiers: { raw: 0, "10m": 0, "1h": 0 } }), START + 3 * DAY + HOUR);
    await compared();
    await store.write([partOf(plan(4))], 0);
    await changed();
    await store.retain(retention({ keepMs: 1.5 * DAY }), START + 3 * DAY);
    await changed();
  });

  it("while rows arrive during a question", async () => {
    await store.write([partOf(plan(1))], 0);
    for (let pid = 2; pid < 5; pid++) {
      await Promise.all([answers(), store.write([partOf(plan(pid))], 0), answers()]);
      await compared();
    }
  });

  it("without summing again after a stream was opened again unchanged", async () => {
    const { stream, items } = partOf(plan(1, { endedAfterMs: 79 * HOUR + MINUTE }));
    const upTo = (count: number) => {
      const part = items.slice(0, count);
      return { stream, items: part, endOffset: part.at(-1)?.endOffset ?? 0 };
    };
    const half = Math.floor(items.length / 2);
    await store.write([upTo(half)], 0);
    const first = await answers();
    const sum = vi.spyOn(KeptSums.prototype, "compute");
    store.forget(stream);
    await store.write([upTo(half)], 0);
    expect(await answers()).toEqual(first);
    expect(sum).not.toHaveBeenCalled();
    // It goes on, from its start and from where it is, and ends.
    store.forget(stream);
    await store.write([upTo(items.length - 1)], 0);
    const longer = await answers();
    expect(longer).not.toEqual(first);
    expect(sum).toHaveBeenCalled();
    sum.mockRestore();
    await compared();
    await store.write([upTo(items.length)], 0);
    await compared();
  });

  it("with the RSS of services as in a chart of the same steps, by the hour or not", async () => {
    await store.write(
      [1, 2, 30].map((pid) => partOf(plan(pid))),
      0,
    );
    const hourly = { startMs: START - 12 * HOUR, endMs: START + 5 * DAY };
    const unaligned = { startMs: START + 17 * MINUTE, endMs: START + 11 * HOUR };
    expect(await sparkline(hourly)).toContain(null);
    await sparkline(unaligned);
    await store.retain(retention({ tiers: { raw: 0, "10m": 0, "1h": MUCH } }), START + 3 * DAY);
    await sparkline(hourly);
    await store.write([partOf(plan(3))], 0);
    await sparkline(hourly);
    await sparkline(unaligned);
  });

  it("for profiles that are valid for longer than a day", async () => {
    // 15 % of a run of 20 days are 3 days.
    const profiles = [0, 20].map((days) => [days * DAY, `main;keep ${MIB}`] as const);
    await store.write([partOf(plan(1, { startedMs: START - 20 * DAY, profiles }))], 0);
    const live = async (startMs: number, endMs: number) => {
      const of = { service: "shop" };
      const { snapshot } = await store.profile({ of, startMs, endMs, mostStacks: 10 });
      return snapshot.sites.liveBytes.reduce((sum, value) => sum + value, 0);
    };
    expect(await live(START, START + 2.5 * DAY)).toBeCloseTo(MIB, 0);
    expect(await live(START + 2.2 * DAY, START + 2.5 * DAY)).toBeCloseTo(MIB, 0);
    expect(await live(START + 3.5 * DAY, START + 4 * DAY)).toBe(0);
  });
});
