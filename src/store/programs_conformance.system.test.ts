/** What every store knows about programs: their lives, verdicts, and the evidence of the fleet's diagnosis. */
import { expect, it } from "vitest";
import { environment } from "../../test/environment.js";
import { present } from "../model/base/present.js";
import type { SeriesName } from "../model/wire/services.js";
import type { StreamPlan } from "../recording/streams.fixture.js";
import type { Store } from "./index.js";
import { DAY, describeStores, HOUR, MIB, MINUTE, partOf, withStore } from "./stores.fixture.js";

/** Noon, so that nothing crosses midnight by itself. */
const START = Date.UTC(2026, 10, 20, 12);

describeStores(environment, (tested) => {
  let store: Store;
  withStore(tested, (opened) => {
    store = opened;
  });

  const give = async (plan: StreamPlan): Promise<string> => {
    const part = partOf(plan);
    await store.write([part], 0);
    return part.stream;
  };

  const window = { startMs: START, endMs: START + HOUR };

  it("knows when recorded programs started, ended and last reported", async () => {
    const rss = [0, 10, 20].map((minutes) => [minutes * MINUTE, MIB] as const);
    const startedMs = START;
    const hurt = { killedAfterMs: [5 * MINUTE, 15 * MINUTE], fragmentation: [0.25, 0.5] };
    await give({ service: "shop", version: "41", pid: 1, startedMs, rss, ...hurt });
    await give({ service: "shop", version: "42", pid: 2, startedMs, rss, endedAfterMs: HOUR / 2 });
    await give({ service: "old", pid: 3, startedMs: START - 3 * HOUR, rss });
    const lives = await store.lives(window);
    expect(lives.map(({ service, version, host }) => [service, version, host])).toEqual([
      ["shop", "41", "here"],
      ["shop", "42", "here"],
    ]);
    expect(lives.map(({ startedMs: from, endedMs, lastMs }) => [from, endedMs, lastMs])).toEqual([
      [START, null, START + 20 * MINUTE],
      [START, START + HOUR / 2, START + 20 * MINUTE],
    ]);
    expect(lives[0]).toMatchObject({
      exitCode: null,
      killsMs: [START + 5 * MINUTE, START + 15 * MINUTE],
      fragmentation: 0.5,
    });
    expect(lives[1]).toMatchObject({ exitCode: 0, killsMs: [], fragmentation: null });
  });

  it("counts the processes of an instance that run, or all of one that has ended", async () => {
    const rss = [0, 10, 20].map((minutes) => [minutes * MINUTE, MIB] as const);
    const plan = { service: "shop", startedMs: START, rss, ofChild: { rssBytes: rss } };
    await give({ ...plan, pid: 1 });
    await give({ ...plan, pid: 2, childEndedAfterMs: MINUTE });
    await give({ ...plan, pid: 3, childEndedAfterMs: MINUTE, endedAfterMs: 20 * MINUTE });
    const { instances } = present(await store.service("shop", window, 4));
    const counts = instances.map(({ pid, processes }) => [pid, processes] as const);
    expect(counts.sort(([a], [b]) => a - b)).toEqual([
      [1, 2],
      [2, 1],
      [3, 2],
    ]);
  });

  it("knows which instances ran in a window of the past, also between two of their readings", async () => {
    const rss = [0, 4, 8].map((minutes) => [minutes * MINUTE, MIB] as const);
    await give({ service: "shop", pid: 1, startedMs: START, rss, endedAfterMs: 10 * MINUTE });
    const at = async (from: number, to: number) => {
      const past = { startMs: START + from * MINUTE, endMs: START + to * MINUTE };
      return (await store.services(past, 4)).services.map((row) => [
        row.instances,
        row.endedInstances,
        row.rssBytes,
      ]);
    };
    expect(await at(0, 9)).toEqual([[1, 0, MIB]]);
    expect(await at(5, 6)).toEqual([[1, 0, MIB]]);
    expect(await at(5, 60)).toEqual([[0, 1, 0]]);
    expect(await at(11, 12)).toEqual([]);
  });

  it("does not take services for parts of one process", async () => {
    const rss = [[0, MIB]] as const;
    await give({ service: "cart", pid: 1, startedMs: START, rss });
    await give({ service: "shop", pid: 1, startedMs: START + 1, recordedAfterMs: 5_000, rss });
    const { services } = await store.services({ startMs: START, endMs: START + MINUTE }, 4);
    expect(services.map(({ service, instances }) => [service, instances])).toEqual([
      ["cart", 1],
      ["shop", 1],
    ]);
  });

  it("gives a service the verdict of an instance whose growth could not be measured", async () => {
    const stream = await give({ service: "shop", pid: 1, startedMs: START, rss: [[0, MIB]] });
    const none = { growthBytesPerHour: 0, limitBytes: 0, msToLimit: 0, confidence: 1, holders: [] };
    const summary = "The run was too short.";
    const kind = "insufficient-evidence";
    await store.putVerdict({ stream, timeMs: START, kind, summary, ...none });
    const { services } = await store.services(window, 4);
    expect(services[0]?.verdict).toMatchObject({ kind, summary });
    expect(services[0]).not.toHaveProperty("growthBytesPerHour");
  });

  it("distinguishes instances that run, are silent or have ended; only the first count as growing", async () => {
    const rss = (minutes: number) =>
      Array.from({ length: minutes }, (_, minute) => [minute * MINUTE, MIB] as const);
    const growth = { kind: "python-leak", confidence: 0.9, summary: "It leaks.", holders: [] };
    const leaks = async (plan: StreamPlan) => {
      const stream = await give(plan);
      const rate = { growthBytesPerHour: MIB, limitBytes: 9 * MIB, msToLimit: 8 * HOUR };
      await store.putVerdict({ stream, timeMs: START, ...growth, ...rate });
    };
    const shop = { service: "shop", startedMs: START };
    await leaks({ ...shop, pid: 1, rss: rss(60) });
    await leaks({ ...shop, pid: 2, rss: rss(30) });
    await leaks({ ...shop, pid: 3, rss: rss(20), endedAfterMs: 20 * MINUTE });
    await leaks({ ...shop, pid: 4, rss: rss(60), endedAfterMs: 2 * HOUR });
    await leaks({ ...shop, service: "gone", pid: 5, rss: rss(9), endedAfterMs: 9 * MINUTE });
    await leaks({ ...shop, service: "mute", pid: 6, rss: rss(9) });
    const { instances, summary } = present(await store.service("shop", window, 4));
    const states = instances.map(({ pid, state, msToLimit }) => [pid, state, msToLimit > 0]);
    expect(states.sort()).toEqual([
      [1, "running", true],
      [2, "silent", false],
      [3, "ended", false],
      [4, "running", true],
    ]);
    expect(summary).toMatchObject({ state: "running", instances: 2, endedInstances: 1 });
    expect(summary).toMatchObject({ silentInstances: 1, growthBytesPerHour: 2 * MIB });
    const { services } = await store.services(window, 4);
    for (const [service, state, ended, silent] of [
      ["gone", "ended", 1, 0],
      ["mute", "silent", 0, 1],
    ]) {
      const row = present(services.find((each) => each.service === service));
      expect(row).toMatchObject({ state, instances: 0, endedInstances: ended });
      expect(row).toMatchObject({ silentInstances: silent, msToLimit: 0 });
      expect(row).toMatchObject({ verdict: { kind: "python-leak" } });
      expect(row).not.toHaveProperty("growthBytesPerHour");
    }
    const { verdicts } = await store.verdicts(window, undefined);
    expect(verdicts.map(({ isRunning, state }) => [isRunning, state])).toEqual([
      ...[
        [true, "running"],
        [true, "running"],
      ],
      ...verdicts.slice(2).map(({ state }) => [false, state]),
    ]);
    expect(
      verdicts
        .slice(2)
        .map(({ state }) => state)
        .sort(),
    ).toEqual([...["ended", "ended", "silent", "silent"]]);
  });

  it("knows the versions of each service that is stored", async () => {
    const plan = { startedMs: START, rss: [[0, MIB]] as const };
    await give({ ...plan, service: "shop", version: "42", pid: 1 });
    await give({ ...plan, service: "shop", version: "41", pid: 2 });
    await give({ ...plan, service: "cart", pid: 3 });
    expect([...(await store.serviceVersions())]).toEqual([
      ["cart", [""]],
      ["shop", ["41", "42"]],
    ]);
  });

  it("computes the time to the limit from what is used now, not when the verdict was made", async () => {
    const stream = await give({
      ...{ service: "shop", pid: 1, startedMs: START },
      rss: [
        [0, 100 * MIB],
        [60, 400 * MIB],
      ],
    });
    const verdict = {
      kind: "python-leak",
      confidence: 0.9,
      summary: "It leaks.",
      holders: [],
    } as const;
    const limitBytes = 500 * MIB;
    const atStart = { timeMs: START, limitBytes, growthBytesPerHour: 50 * MIB };
    const timeLeft = async (endMs = START + MINUTE) =>
      (await store.service("shop", { startMs: START, endMs }, 4))?.instances[0]?.msToLimit;
    await store.putVerdict({ stream, ...verdict, ...atStart, msToLimit: 8 * 3_600_000 });
    expect(await timeLeft()).toBe(2 * 3_600_000);
    // An hour later it has been silent for long.
    expect(await timeLeft(START + HOUR)).toBe(0);
    const gauge = async () => (await store.versionGauges(START + MINUTE))[0]?.msToLimit;
    expect(await gauge()).toBe(2 * 3_600_000);
    // A verdict that names no time is not given one.
    await store.putVerdict({ stream, ...verdict, ...atStart, msToLimit: 0 });
    expect(await timeLeft()).toBe(0);
    expect(await gauge()).toBeNull();
  });

  it("keeps the newest verdict of a stream", async () => {
    const stream = await give({ service: "shop", pid: 1, startedMs: START, rss: [[0, MIB]] });
    const verdict = {
      stream,
      confidence: 0.9,
      limitBytes: 0,
      msToLimit: 0,
      summary: "It grows.",
      holders: [],
    };
    const growth = { timeMs: START, growthBytesPerHour: 7 };
    await store.putVerdict({ ...verdict, ...growth, kind: "warm-up" });
    await store.putVerdict({ ...verdict, ...growth, kind: "python-leak" });
    expect((await store.instance(stream))?.verdict.kind).toBe("python-leak");
  });

  it("gives the fleet's diagnosis RSS by step, the verdicts of processes, and live bytes by line", async () => {
    const hours = Array.from({ length: 49 }, (_, hour) => hour);
    const plan = { service: "shop", version: "2", startedMs: START - 48 * HOUR };
    const rss = hours.flatMap((hour) =>
      [0, 20, 40].map((minute) => [hour * HOUR + minute * MINUTE, (100 + hour) * MIB] as const),
    );
    const profiles = hours.map(
      (hour) =>
        [
          hour * HOUR,
          `main;handle;keep ${(1 + hour) * MIB} variance=1\nmain;read;keep ${MIB} variance=1`,
        ] as const,
    );
    const stream = await give({ ...plan, pid: 1, rss, profiles });
    await give({ ...plan, pid: 2, rss: rss.slice(0, 30), endedAfterMs: 10 * HOUR });
    await give({ ...plan, service: "other", pid: 3, rss: [[0, MIB]] });
    const holder = {
      line: { function: "keep", file: "app.py", line: 1, kind: "python" as const },
      path: ["module app", "KEPT"],
      type: "dict",
    };
    await store.putVerdict({
      ...{ stream, timeMs: START, kind: "python-leak", confidence: 0.9, summary: "It grows." },
      ...{ growthBytesPerHour: MIB, limitBytes: 500 * MIB, msToLimit: 0, holders: [holder] },
    });
    const all = { startMs: START - 72 * HOUR, endMs: START + HOUR };
    expect(await store.fleetServices(all)).toMatchObject([
      { service: "other", processes: 1 },
      { service: "shop", processes: 2, lastMs: START + 40 * MINUTE },
    ]);
    const [evidence] = await store.fleetEvidence(["shop"], all);
    expect(evidence?.processes).toHaveLength(2);
    const first = evidence?.processes.find(({ process }) => process === stream);
    expect(first).toMatchObject({
      version: "2",
      kind: "python-leak",
      limitBytes: 500 * MIB,
      holders: [holder],
    });
    expect(evidence?.processes.map(({ endedMs }) => endedMs)).toContain(plan.startedMs + 10 * HOUR);
    expect(new Set(evidence?.processes.map(({ instance }) => instance)).size).toBe(2);
    expect(first?.rss.times.every((time, at, times) => time > (times[at - 1] ?? 0))).toBe(true);
    expect(first?.rss.values.at(-1)).toBe(148 * MIB);
    const sites = (await store.fleetSites([stream], all)).get(stream);
    // Both stacks end in the same line.
    expect(sites?.map(({ live }) => (live.values.at(-1) ?? 0) / MIB)).toEqual([50]);
    expect(await store.fleetEvidence([], all)).toEqual([]);
  });

  it("gives the fleet's diagnosis what was observed in processes that ended within a minute, if their memory grew", async () => {
    const verdict = { limitBytes: 0, msToLimit: 0, confidence: 0, holders: [], timeMs: START };
    const ends = async (pid: number, seconds: number, growthBytesPerHour: number) => {
      const life = {
        startedMs: START + pid,
        endedAfterMs: seconds * 1000,
        rss: [[0, MIB]] as const,
      };
      const stream = await give({ service: "shop", pid, ...life });
      const said = { kind: "insufficient-evidence", summary: `${pid} grows.`, growthBytesPerHour };
      await store.putVerdict({ ...verdict, ...said, stream });
    };
    await ends(1, 20, MIB);
    await ends(2, 20, 0);
    await ends(3, 90, MIB);
    await give({ service: "shop", pid: 4, startedMs: START + 4, rss: [[0, MIB]] });
    const [evidence] = await store.fleetEvidence(["shop"], window);
    expect(evidence?.processes.map(({ observed }) => observed)).toEqual([
      ...["1 grows.", undefined, undefined, undefined],
    ]);
  });

  it("gives the fleet's diagnosis the requests of all processes of a program, also from a coarser tier", async () => {
    const startedMs = START - 30 * HOUR;
    const every = (rate: number) =>
      Array.from({ length: 300 }, (_, step) => [step * 2 * MINUTE, rate] as const);
    const plan = { service: "shop", startedMs, rss: every(9 * MIB), endedAfterMs: 10 * HOUR };
    const rates = { requestsPerSecond: every(30) };
    await give({ ...plan, pid: 1, figures: rates, ofChild: { requestsPerSecond: every(12.5) } });
    await give({ ...plan, startedMs: startedMs + 1, pid: 2 });
    const all = { startMs: START - 72 * HOUR, endMs: START };
    const requests = async () => {
      const [evidence] = await store.fleetEvidence(["shop"], all);
      return evidence?.processes.map(({ requests }) =>
        requests === null ? null : [...new Set(requests.values.map((rate) => rate.toFixed(6)))],
      );
    };
    expect(await requests()).toEqual([["42.500000"], null]);
    const tiers = { raw: DAY, "10m": Number.MAX_SAFE_INTEGER, "1h": Number.MAX_SAFE_INTEGER };
    const pass = { keepMs: 4000 * DAY, mostBytes: Number.MAX_SAFE_INTEGER, tiers };
    expect((await store.retain(pass, START + 3 * DAY)).failed).toEqual([]);
    expect(await requests()).toEqual([["42.500000"], null]);
  });

  it("knows the hourly peaks of processes, without pages that are shared, and what else their cgroup uses", async () => {
    const at = (...mib: number[]) =>
      mib.map((each, step) => [step * 20 * MINUTE, each * MIB] as const);
    const figures = {
      // Half of what the processes map is shared.
      treePssBytes: at(50, 100),
      cgroupUsageBytes: at(130, 230, 130, 130, 130),
      cgroupLimitBytes: at(512),
    };
    const rss = at(100, 200, 100, 100, 100);
    const killed = { killedAfterMs: [5 * MINUTE], killedByMachineAfterMs: [6 * MINUTE] };
    await give({ service: "shop", pid: 1, startedMs: START, rss, figures, ...killed });
    const [shop, none] = await store.fleetPeaks(["shop", "none"], {
      ...window,
      endMs: START + 81 * MINUTE,
    });
    expect(shop?.processes).toMatchObject([
      {
        peaks: { times: [START, START + HOUR], values: [100 * MIB, 50 * MIB] },
        // 130 MiB, less the half of 100 MiB that only this program uses.
        besideBytes: 80 * MIB,
        limitBytes: 512 * MIB,
        killsMs: [START + 5 * MINUTE],
        endedMs: null,
      },
    ]);
    expect(none?.processes).toEqual([]);
  });

  it("takes from a peak what was shared before it, not as large a share of the peak", async () => {
    const at = (...mib: number[]) => mib.map((each, step) => [step * MINUTE, each * MIB] as const);
    const figures = { treePssBytes: at(15) };
    await give({ service: "shop", pid: 1, startedMs: START, rss: at(20, 300, 20, 4), figures });
    const [shop] = await store.fleetPeaks(["shop"], window);
    expect(shop?.processes[0]?.peaks.values).toEqual([295 * MIB]);
  });

  it("knows peaks between two readings by what the kernel keeps, also from a coarser tier", async () => {
    const startedMs = START - 30 * HOUR;
    const at = (...mib: number[]) => mib.map((each, step) => [step * MINUTE, each * MIB] as const);
    const plan = { service: "shop", startedMs, rss: at(10, 11, 12) };
    await give({ ...plan, pid: 1, figures: { vmHwmBytes: at(10, 300, 300) } });
    await give({ ...plan, pid: 2, ofChild: { vmHwmBytes: at(1, 1, 90) } });
    await give({ ...plan, pid: 3, endedAfterMs: 3 * MINUTE, maxRssBytes: 70 * MIB });
    // Its mark is older than its recording.
    const before = { startedMs: startedMs - DAY, recordedAfterMs: DAY };
    const late = (...mib: number[]) => at(...mib).map(([ms, each]) => [DAY + ms, each] as const);
    const figures = { vmHwmBytes: late(500, 500) };
    await give({ ...plan, ...before, pid: 4, rss: late(10, 11), figures });
    const peaks = async (endMs: number) => {
      const around = { startMs: startedMs, endMs };
      const { instances } = present(await store.service("shop", around, 4));
      const [sizes] = await store.fleetPeaks(["shop"], around);
      return [
        instances.map(({ pid, peakRssBytes }) => [pid, peakRssBytes / MIB]).sort(),
        sizes?.processes.map(({ peaks: { values } }) => Math.max(...values) / MIB).sort(),
      ];
    };
    const expected = [
      [
        [1, 300],
        [2, 90],
        [3, 70],
        [4, 11],
      ],
      [11, 300, 70, 90],
    ];
    expect(await peaks(startedMs + HOUR)).toEqual(expected);
    const [[first]] = (await peaks(startedMs + 50_000)) as [[[number, number]]];
    expect(first).toEqual([1, 10]);
    const tiers = { raw: DAY, "10m": Number.MAX_SAFE_INTEGER, "1h": Number.MAX_SAFE_INTEGER };
    const pass = { keepMs: 4000 * DAY, mostBytes: Number.MAX_SAFE_INTEGER, tiers };
    expect((await store.retain(pass, START + 3 * DAY)).failed).toEqual([]);
    expect(await peaks(startedMs + HOUR)).toEqual(expected);
  });

  /** A process that is recorded from outside, with the agent, and from outside again; and another one. @returns the three streams */
  const moving = async (ofAgent: Partial<StreamPlan>): Promise<string[]> => {
    const rss = (...minutes: number[]) => minutes.map((at) => [at * MINUTE, 9 * MIB] as const);
    const process = { service: "shop", version: "3", pid: 7, startedMs: START };
    const left = { exitCode: null, killedAfterMs: [MINUTE] };
    const before = { ...process, rss: rss(1, 2), endedAfterMs: 3 * MINUTE, ...left };
    // Each recording computes the start itself.
    const agent = { ...process, startedMs: START + 8, recordedAfterMs: 3 * MINUTE, rss: rss(3, 5) };
    const profiles = [[4 * MINUTE, `main;f ${MIB} variance=1`]] as const;
    const after = { ...process, recordedAfterMs: 6 * MINUTE, rss: rss(6, 8) };
    // Of another container with the same host name, say.
    await give({ ...process, recordedAfterMs: 1, rss: rss(1, 4, 8) });
    return [await give(before), await give({ ...agent, profiles, ...ofAgent }), await give(after)];
  };
  const moved = { startMs: START, endMs: START + 9 * MINUTE };

  it("counts a process once that was recorded from outside, then with the agent, then from outside", async () => {
    const streams = await moving({ endedAfterMs: 6 * MINUTE, exitCode: null });
    const { instances, summary } = present(await store.service("shop", moved, 1));
    expect(summary).toMatchObject({ instances: 2, endedInstances: 0, rssBytes: 18 * MIB });
    const next = new Map(instances.map((row) => [row.stream, row.continuedAs]));
    expect(streams.map((stream) => next.get(stream))).toEqual([...streams.slice(1), undefined]);
    const lives = await store.lives(moved);
    expect(lives.map(({ endedMs, killsMs }) => [endedMs, killsMs.length]).sort()).toEqual([
      [null, 0],
      [null, 1],
    ]);
    const [evidence] = await store.fleetEvidence(["shop"], moved);
    const of = evidence?.processes ?? [];
    expect(new Set(of.map(({ instance, startedMs }) => `${instance} ${startedMs}`)).size).toBe(2);
    expect(of.filter(({ endedMs }) => endedMs === null)).toHaveLength(2);
    const [size] = await store.fleetPeaks(["shop"], moved);
    expect(new Set(size?.processes.map(({ instance }) => instance)).size).toBe(2);
    const minutes = { ...moved, stepMs: MINUTE, service: "shop", name: "rssBytes" } as const;
    const { groups } = await store.series({ ...minutes, by: "none" });
    const mib = groups.flatMap(({ values }) => values.map((value) => (value ?? 0) / MIB));
    expect(mib.map(Math.round)).toEqual([0, 18, 18, 18, 18, 18, 18, 18, 18]);
    const running = await store.running({ of: { service: "shop" }, ...moved });
    expect(running).toBeCloseTo((2 * 8) / 9, 2);
    const [gauges] = await store.versionGauges(moved.endMs);
    expect(gauges).toMatchObject({ instances: 2, rssBytes: 18 * MIB });
  });

  it("counts it once in the list if its collector was killed, so that no recording has an end", async () => {
    const streams = await moving({});
    const { instances, summary } = present(await store.service("shop", moved, 1));
    expect(summary).toMatchObject({ instances: 2, endedInstances: 0, rssBytes: 18 * MIB });
    expect(instances.filter(({ continuedAs }) => continuedAs === streams[2])).toHaveLength(1);
    expect(await store.lives(moved)).toHaveLength(2);
    const [evidence] = await store.fleetEvidence(["shop"], moved);
    expect(evidence?.processes.filter(({ endedMs }) => endedMs === null)).toHaveLength(2);
  });

  it("has the control groups' use, limit and memory.high as series, and the newest ones in the list of instances", async () => {
    const limits = (mib: number) => ({
      cgroupUsageBytes: [[0, 60 * MIB]] as const,
      cgroupLimitBytes: [[0, 512 * MIB]] as const,
      cgroupHighBytes: [[0, mib * MIB]] as const,
    });
    const plan = { service: "shop", startedMs: START, rss: [[0, 50 * MIB]] as const };
    await give({ ...plan, pid: 1, figures: limits(400) });
    await give({ ...plan, pid: 2, startedMs: START + 1, figures: limits(300) });
    await give({ ...plan, service: "free", pid: 3 });
    const of = { startMs: START, endMs: START + MINUTE, stepMs: MINUTE, by: "none" as const };
    const series = async (service: string, name: SeriesName) => {
      const { groups } = await store.series({ ...of, service, name });
      return groups.map(({ values }) => Math.round((values[0] ?? 0) / MIB));
    };
    expect(await series("shop", "cgroupUsageBytes")).toEqual([120]);
    expect(await series("shop", "cgroupLimitBytes")).toEqual([1024]);
    expect(await series("shop", "cgroupHighBytes")).toEqual([700]);
    expect(await series("free", "cgroupHighBytes")).toEqual([]);
    const range = { startMs: START, endMs: START + MINUTE };
    const high = async (service: string) =>
      (await store.service(service, range, 1))?.instances.map(({ highBytes }) => highBytes);
    expect((await high("shop"))?.sort()).toEqual([300 * MIB, 400 * MIB]);
    expect(await high("free")).toEqual([undefined]);
    const summary = async (service: string) => (await store.service(service, range, 1))?.summary;
    expect(await summary("shop")).toMatchObject({ limitBytes: 1024 * MIB, highBytes: 700 * MIB });
    expect(await summary("free")).not.toHaveProperty("highBytes");
  });
});
