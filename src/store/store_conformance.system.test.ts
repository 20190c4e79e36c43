/** What every store does (stores.fixture.ts). */
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { environment } from "../../test/environment.js";
import { present } from "../model/base/present.js";
import { frameName, framesOf } from "../model/profile/frame_text.js";
import { type StreamPlan, streamBytes } from "../recording/streams.fixture.js";
import type { Store, WindowProfile } from "./index.js";
import { describeStores, HOUR, MIB, MINUTE, partOf, withStore } from "./stores.fixture.js";

/** Noon, so that nothing crosses midnight by itself. */
const START = Date.UTC(2026, 10, 20, 12);

describeStores(environment, (tested) => {
  let store: Store;
  const open = withStore(tested, (opened) => {
    store = opened;
  });

  const reopen = async () => {
    await store.close();
    await open();
  };

  const give = async (plan: StreamPlan, oldestMs = 0): Promise<string> => {
    const part = partOf(plan);
    await store.write([part], oldestMs);
    return part.stream;
  };

  const window = { startMs: START, endMs: START + HOUR };
  const profile = (
    service: string,
    {
      version,
      stream,
      ...some
    }: Partial<Parameters<Store["profile"]>[0] & { version: string; stream: string }> = {},
  ) => {
    const of = {
      service,
      ...(version === undefined ? {} : { version }),
      ...(stream === undefined ? {} : { stream }),
    };
    return store.profile({ ...window, of, mostStacks: 1000, ...some });
  };
  const total = ({ snapshot }: WindowProfile, column: "liveBytes" | "allocatedBytes") =>
    snapshot.sites[column].reduce((sum, value) => sum + value, 0);

  it("averages live bytes over time and sums them over processes, whatever the step", async () => {
    await give({
      service: "shop",
      pid: 1,
      startedMs: START,
      profiles: [
        [0, "main;load 1048576 variance=1"],
        [30 * MINUTE, "main;load 3145728 variance=1"],
      ],
      rss: [
        [0, MIB],
        [4 * MINUTE, 3 * MIB],
        [8 * MINUTE, 3 * MIB],
      ],
      endedAfterMs: 60 * MINUTE,
    });
    await give({
      service: "shop",
      pid: 2,
      startedMs: START,
      rss: [
        [0, MIB],
        [4 * MINUTE, MIB],
      ],
    });
    // 1 MiB and 3 MiB, each carried on for 10 minutes of the hour.
    expect(total(await profile("shop"), "liveBytes") / MIB).toBeCloseTo((1 * 10 + 3 * 10) / 60, 6);
    const endMs = START + 8 * MINUTE;
    const inSteps = async (stepMs: number) => {
      const query = {
        startMs: START,
        endMs,
        service: "shop",
        name: "rssBytes",
        by: "none",
      } as const;
      const { groups } = await store.series({ ...query, stepMs });
      const values = present(groups[0]).values;
      return values.reduce<number>((sum, value) => sum + (value ?? 0), 0) / values.length;
    };
    // 1 then 3 MiB, 4 minutes each, and 1 MiB of the other throughout.
    expect((await inSteps(8 * MINUTE)) / MIB).toBeCloseTo(3, 6);
    expect((await inSteps(MINUTE)) / MIB).toBeCloseTo(3, 6);
    expect((await inSteps(30_000)) / MIB).toBeCloseTo(3, 6);
  });

  it("averages the last step over the part of it that lies in the window", async () => {
    await give({
      service: "shop",
      pid: 1,
      startedMs: START,
      rss: [
        [0, MIB],
        [60_000, 4 * MIB],
      ],
      endedAfterMs: 70_000,
    });
    const query = { service: "shop", name: "rssBytes", by: "none", stepMs: 60_000 } as const;
    const { groups } = await store.series({ ...query, startMs: START, endMs: START + 70_000 });
    expect(present(groups[0]).values.map((value) => (value ?? 0) / MIB)).toEqual([1, 4]);
  });

  it("averages chosen instances over the part of a step in which they reported", async () => {
    const run = (pid: number, afterMs: number) =>
      give({
        ...{ service: "shop", pid, startedMs: START + afterMs, endedAfterMs: 2 * MINUTE },
        rss: [
          [0, MIB],
          [MINUTE, 3 * MIB],
        ],
      });
    const [first, second] = [await run(1, 0), await run(2, 12 * MINUTE)];
    await run(3, 0);
    const query = { ...window, service: "shop", name: "rssBytes", by: "instance" } as const;
    const { groups } = await store.series({
      ...{ ...query, stepMs: 10 * MINUTE, streams: [first, second] },
    });
    const mib = groups.map(({ group, values }) => [
      group,
      values.slice(0, 3).map((value) => (value === null ? null : value / MIB)),
    ]);
    expect(Object.fromEntries(mib)).toEqual({
      [first]: [2, null, null],
      [second]: [null, 2, null],
    });
  });

  it("averages a group over the part of a step in which any of its processes reported", async () => {
    const run = (pid: number, version: string, fromMs: number, rss: number[][]) =>
      give({
        ...{
          service: "job",
          version,
          pid,
          startedMs: START + fromMs,
          rss: rss as [number, number][],
        },
        endedAfterMs: (rss.at(-1)?.[0] ?? 0) + MINUTE,
      });
    // Runs one after the other, with a pause; and one whose readings have a gap.
    await run(1, "1", 4 * MINUTE, [
      [0, 6 * MIB],
      [2 * MINUTE, 6 * MIB],
    ]);
    await run(2, "1", 6 * MINUTE, [[0, 2 * MIB]]);
    await run(3, "1", 9 * MINUTE, [[0, 2 * MIB]]);
    await run(4, "2", MINUTE, [
      [0, 5 * MIB],
      [7 * MINUTE, 5 * MIB],
    ]);
    const query = { ...window, service: "job", name: "rssBytes" } as const;
    const asked = async (by: "none" | "version", stepMs: number) =>
      (await store.series({ ...query, by, stepMs })).groups.map(({ group, values }) => [
        group,
        values.slice(0, 2).map((value) => (value === null ? null : value / MIB)),
      ]);
    // Version 1: minutes 4 to 7 with 6 MiB, 6 to 7 also with 2 MiB, 9 to 10 with 2 MiB.
    expect(await asked("version", 10 * MINUTE)).toEqual([
      ["1", [expect.closeTo((3 * 6 + 2 + 2) / 4, 6), null]],
      ["2", [expect.closeTo(5, 6), null]],
    ]);
    // All: minutes 1 to 7 and 8 to 10. Version 2 has minutes 1 to 6 and 8 to 9.
    expect(await asked("none", 10 * MINUTE)).toEqual([
      ["", [expect.closeTo((22 + 6 * 5) / 8, 6), null]],
    ]);
    const services = await store.services(window, 6);
    expect(services.services[0]?.sparkline[0]).toBeCloseTo((52 / 8) * MIB, 0);
  });

  it("counts a stack that a later profile lacks as zero", async () => {
    await give({
      service: "shop",
      pid: 1,
      startedMs: START,
      profiles: [
        [0, "main;gone 6000000 variance=1"],
        [MINUTE, "main;load 60 variance=1"],
      ],
    });
    const merged = await profile("shop", { endMs: START + 2 * MINUTE });
    const live = new Map(
      Array.from(merged.snapshot.sites.stack, (stack, row) => [
        frameName(merged.tables, present(framesOf(merged.tables, stack)[0])),
        merged.snapshot.sites.liveBytes[row],
      ]),
    );
    expect(live.get("gone")).toBeCloseTo(3_000_000, 3);
    expect(live.get("load")).toBeCloseTo(30, 3);
  });

  it("sums allocated bytes of the profiles in the window, each counted once", async () => {
    await give({
      service: "shop",
      pid: 1,
      startedMs: START,
      profiles: [
        [0, "main;load 100 allocated=1000"],
        [MINUTE, "main;load 100 allocated=1500"],
        [2 * MINUTE, "main;load 5000000 allocated=6000000 variance=1"],
      ],
    });
    expect(total(await profile("shop"), "allocatedBytes")).toBeCloseTo(6_000_000, 3);
  });

  it("stores a profile without samples if nothing has changed, and still reads it", async () => {
    const same = "main;load 1048576 variance=1000000\nmain;work 2048 variance=1000000";
    await give({
      service: "shop",
      pid: 1,
      startedMs: START,
      profiles: Array.from({ length: 9 }, (_, minute) => [minute * MINUTE, same] as const),
    });
    const merged = await profile("shop", { endMs: START + 8 * MINUTE });
    expect(total(merged, "liveBytes")).toBeCloseTo(1048576 + 2048, 3);
  });

  it("counts what a program allocated until its end, although its live memory has not changed", async () => {
    const held = (allocated: number) => `main;load 1048576 allocated=${allocated} variance=1000000`;
    await give({
      service: "job",
      ...{ pid: 1, startedMs: START, endedAfterMs: 8 * MINUTE },
      profiles: [1, 4, 8].map((minute) => [minute * MINUTE, held(minute * 10_000_000)] as const),
    });
    expect(total(await profile("job"), "allocatedBytes")).toBeCloseTo(80_000_000, 3);
  });

  it("has the live bytes of a program that a shell became", async () => {
    await give({
      service: "shop",
      ...{ pid: 1, startedMs: START, isProfiledItself: true, wasShell: true },
      rss: [[0, 3 * MIB]],
      profiles: [[0, `main;load ${2 * MIB} variance=1`]],
    });
    const [gauges] = await store.versionGauges(START + MINUTE);
    expect(gauges).toMatchObject({ liveBytes: 2 * MIB, profiledInstances: 1 });
    const held = await profile("shop", { over: "reported" });
    expect(total(held, "liveBytes")).toBeCloseTo(2 * MIB, 3);
  });

  it("changes nothing when a stream is written again, also after a restart", async () => {
    const plan: StreamPlan = {
      service: "shop",
      version: "41",
      pid: 1,
      startedMs: START,
      rss: [
        [0, MIB],
        [MINUTE, 2 * MIB],
      ],
      profiles: [
        [0, "main;load 1000 allocated=5000"],
        [MINUTE, "main;load 9000000 allocated=9999999 variance=1"],
      ],
      endedAfterMs: 2 * MINUTE,
    };
    const all = async () => {
      const merged = await profile("shop");
      return {
        services: await store.services(window, 8),
        live: total(merged, "liveBytes"),
        allocated: total(merged, "allocatedBytes"),
        service: await store.service("shop", window, 8),
      };
    };
    const stream = await give(plan);
    const before = await all();
    expect(before.allocated).toBeCloseTo(9_999_999, 0);
    store.forget(stream);
    await give(plan);
    expect(await all()).toEqual(before);
    await reopen();
    expect((await store.writtenOffsets()).get(stream)).toBe(streamBytes(plan).length);
    expect(await all()).toEqual(before);
    await give(plan);
    expect(await all()).toEqual(before);
  });

  it("writes a stream to its end that is forgotten meanwhile", async () => {
    const plan: StreamPlan = {
      service: "shop",
      pid: 1,
      startedMs: START,
      profiles: [
        [0, "main;load 8000000 variance=1"],
        [MINUTE, "main;load 9000000 variance=1"],
      ],
    };
    const part = partOf(plan);
    let isWriting = true;
    const writing = store.write([part], 0).finally(() => {
      isWriting = false;
    });
    while (isWriting) {
      store.forget(part.stream);
      await setImmediate();
    }
    await writing;
    expect(total(await profile("shop"), "liveBytes")).toBeGreaterThan(0);
    expect((await store.writtenOffsets()).get(part.stream)).toBe(part.endOffset);
  });

  it("continues a stream after a restart", async () => {
    const plan: StreamPlan = {
      service: "shop",
      pid: 1,
      startedMs: START,
      profiles: [
        [0, "main;load 100 allocated=1000"],
        [MINUTE, "main;load 5000000 allocated=6000000 variance=1"],
      ],
    };
    const whole = partOf(plan);
    const { stream, items } = whole;
    const cut = items.findIndex(({ kind }) => kind === "profile") + 1;
    const endOffset = present(items[cut - 1]).endOffset;
    await store.write([{ stream, items: items.slice(0, cut), endOffset }], 0);
    await reopen();
    expect(store.knows(stream)).toBe(false);
    await store.write([whole], 0);
    // The second profile's allocations are counted since the first one's.
    expect(total(await profile("shop"), "allocatedBytes")).toBeCloseTo(6_000_000, 3);
  });

  it("states exactly what is left out", async () => {
    const lines = Array.from(
      { length: 50 },
      (_, at) => `main;f${at} ${(at + 1) * 1000} variance=1`,
    );
    await give({ service: "shop", pid: 1, startedMs: START, profiles: [[0, lines.join("\n")]] });
    const whole = await profile("shop");
    const cut = await profile("shop", { mostStacks: 3 });
    expect(cut.otherStacks).toBe(47);
    expect(cut.snapshot.sites.length).toBe(4);
    expect(total(cut, "liveBytes")).toBeCloseTo(total(whole, "liveBytes"), 6);
  });

  it("has a program as an instance that is older than its recording, and is described before its processes", async () => {
    const rss = [[6 * MINUTE, MIB]] as const;
    const plan = { service: "shop", pid: 1, startedMs: START, recordedAfterMs: 5 * MINUTE, rss };
    const { stream, items: all, endOffset } = partOf(plan);
    const [description, ...items] = all;
    const first = present(description);
    await store.write([{ stream, items: [first], endOffset: first.endOffset }], 0);
    await store.write([{ stream, items, endOffset }], 0);
    const service = await store.service("shop", window, 4);
    expect(service?.instances).toMatchObject([{ pid: 1, startedMs: START }]);
  });

  it("distinguishes versions, services and instances", async () => {
    const running = { startedMs: START, rss: [[0, MIB]] } as const;
    const first = await give({ ...running, service: "shop", version: "41", pid: 1 });
    await give({ ...running, service: "shop", version: "42", pid: 2, rss: [[0, 5 * MIB]] });
    await give({ ...running, service: "o'\"; DROP TABLE series; --", pid: 3 });
    const { services } = await store.services({ startMs: START, endMs: START + MINUTE }, 4);
    expect(services.map(({ service, rssBytes }) => [service, rssBytes])).toEqual([
      ["o'\"; DROP TABLE series; --", MIB],
      ["shop", 6 * MIB],
    ]);
    expect(present(services[1]).versions).toEqual(["41", "42"]);
    const by = async (by: "version" | "instance", some: object) => {
      const query = {
        startMs: START,
        endMs: START + MINUTE,
        name: "rssBytes",
        stepMs: MINUTE,
      } as const;
      const { groups } = await store.series({ ...query, service: "shop", by, ...some });
      return groups.map(({ group, values }) => [group, values[0]]);
    };
    expect(await by("version", {})).toEqual([
      ["41", MIB],
      ["42", 5 * MIB],
    ]);
    expect(await by("instance", { version: "41" })).toEqual([[first, MIB]]);
    expect(await by("version", { version: "' OR ''='" })).toEqual([]);
    expect(await store.service("nobody", window, 4)).toBeNull();
    expect(await store.instances("nobody", window)).toBeNull();
    const { instances } = present(await store.service("shop", window, 4));
    expect(await store.instances("shop", window)).toEqual(expect.arrayContaining(instances));
    expect(await store.instances("shop", { startMs: 0, endMs: HOUR })).toEqual([]);
    expect(await store.instance(first)).toMatchObject({ service: "shop", version: "41", pid: 1 });
    expect(await store.instance("0".repeat(32))).toBeNull();
  });

  it("removes the oldest days first, and names them", async () => {
    const day = 24 * HOUR;
    for (const [pid, startedMs] of [
      [1, START - 3 * day],
      [2, START - day],
      [3, START],
    ] as const) {
      await give({ service: "shop", pid, startedMs, rss: [[0, MIB]] });
    }
    const retain = async (mostBytes: number) =>
      (
        await store.retain(
          { keepMs: 2 * day, mostBytes, tiers: { raw: day, "10m": day, "1h": day } },
          START,
        )
      ).removed;
    expect(await retain(Number.MAX_SAFE_INTEGER)).toEqual(["2026-11-17"]);
    expect(await retain(1)).toEqual(["2026-11-19"]);
    const { services } = await store.services(
      { startMs: START - 4 * day, endMs: START + MINUTE },
      4,
    );
    const { instances, silentInstances } = present(services[0]);
    expect(instances + silentInstances).toBe(1);
    expect((await store.use()).bytes).toBeGreaterThan(0);
    // What is older than retention is not written in the first place.
    await give(
      { service: "old", pid: 9, startedMs: START - 30 * day, rss: [[0, MIB]] },
      START - 2 * day,
    );
    expect((await store.use()).oldestMs).toBe(Date.UTC(2026, 10, 20));
  });

  it("lists imported files without RSS, with and without stacks", async () => {
    const file = { startedMs: START, endedAfterMs: 0 } as const;
    const profiles = [[0, "main;load 1048576 variance=0"]] as const;
    await give({ ...file, service: "heap", pid: 1, importedFrom: "tracemalloc", profiles });
    await give({ ...file, service: "graph", pid: 2, importedFrom: "objgraph" });
    const { services } = await store.services(window, 4);
    expect(services.map(({ service }) => service)).toEqual(["graph", "heap"]);
    expect(services[1]?.verdict.summary).toBe("not diagnosed: its RSS is unknown");
    const heap = await store.service("heap", window, 4);
    expect(heap?.instances).toMatchObject([{ source: "tracemalloc" }]);
    const graph = await store.service("graph", window, 4);
    expect(graph?.instances).toMatchObject([{ source: "objgraph" }]);
    expect(graph?.instances[0]).not.toHaveProperty("liveBytes");
  });

  it("stores values and names of labels that are cut within a character, and the streams of others", async () => {
    const profiles = [[0, `main;load ${MIB} variance=1`]] as const;
    const labels = { note: "a\ud800b", "na\udc00me": "c" };
    await give({ service: "odd", pid: 1, startedMs: START, labels, profiles });
    await give({ service: "shop", pid: 2, startedMs: START, labels: { note: "d" }, profiles });
    const all = { ...window, matchers: [] };
    expect(await store.labelValues("note", all)).toEqual(["a\ufffdb", "d"]);
    expect(await store.labelNames(all)).toContain("na\ufffdme");
    expect(await store.labelValues("service_name", all)).toEqual(["odd", "shop"]);
  });

  it("keeps the first values of a label, and counts the rest as one", async () => {
    await store.close();
    await open({ labelValues: 3 });
    const request = (pid: number, service = "shop") => ({
      ...{ service, pid, startedMs: START, labels: { request: `r${pid}`, team: "a" } },
      profiles: [[0, `main;load ${MIB} variance=1 label=user:u${pid}`]] as const,
    });
    for (const pid of [1, 2, 3, 4, 5]) {
      await give(request(pid));
    }
    const all = { ...window, matchers: [] };
    const by = async (name: string) =>
      (
        await store.figureSeries({
          ...{ ...all, figure: "liveBytes", groupBy: [name], stepMs: HOUR },
        })
      ).map(({ group, values }) => [group[0], (values[0] ?? 0) / MIB]);
    const held = 10 / 60;
    const close = (n: number) => expect.closeTo(n * held, 6);
    const first = [
      ["__overflow__", close(2)],
      ["r1", close(1)],
      ["r2", close(1)],
      ["r3", close(1)],
    ];
    expect(await by("request")).toEqual(first);
    expect(await by("team")).toEqual([["a", close(5)]]);
    expect((await store.labelUse()).sort((a, b) => (a.label < b.label ? -1 : 1))).toEqual([
      { service: "shop", label: "request", values: 3, overflowed: 2 },
      { service: "shop", label: "team", values: 1, overflowed: 0 },
      { service: "shop", label: "user", values: 3, overflowed: 2 },
    ]);
    // A restart keeps the values that were first; another service has a budget of its own.
    await store.close();
    await open({ labelValues: 3 });
    await give(request(6));
    await give(request(2));
    await give(request(7, "other"));
    expect(await by("request")).toEqual([
      ["__overflow__", close(3)],
      ...first.slice(1),
      ["r7", close(1)],
    ]);
    expect(total(await profile("shop"), "liveBytes") / MIB).toBeCloseTo(6 * held, 6);
  });
});
