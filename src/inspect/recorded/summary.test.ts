import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { peakTimeText } from "../../model/profile/peak_time.js";
import type { Metric } from "../../model/profile/series.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import { openRecording } from "../../recording/reader.js";
import { START_MS, writeSmallRecording } from "../../recording/recording.fixture.js";
import type { Moment, Recording } from "../../recording/types.js";
import { RecordingWriter } from "../../recording/writer.js";
import { buildReport } from "./report.js";
import { summarize } from "./summary.js";

const MIB = 2 ** 20;
const HOUR = 3_600_000;
let folder: string;
let small: Recording;

const noProgress = async () => {};

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-summary-"));
  const path = join(folder, "small.tidemark");
  writeSmallRecording(path);
  small = openRecording(path);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("sites", () => {
  test("at the end: leaf first, largest first, with standard errors", () => {
    const { sites } = summarize(small, "end");
    expect(sites[0]).toMatchObject({
      stack: [
        { function: "load_2", file: "/srv/app.py", line: 102, kind: "python" },
        { function: "main", file: "/srv/app.py", line: 10, kind: "python" },
      ],
      domain: "native",
      liveBytes: 6 * MIB,
      liveObjects: 3,
      liveBytesAtPeak: 9 * MIB,
      allocatedBytes: 18 * MIB,
      allocatedObjects: 9,
      standardErrorBytes: Math.sqrt(6 * MIB),
      standardErrorAtPeakBytes: Math.sqrt(12 * MIB),
      standardErrorAllocatedBytes: Math.sqrt(24 * MIB),
    });
    // Of millions of samples: the normal's.
    const { low = 0, high = 0 } = sites[0]?.interval95Bytes ?? {};
    expect((6 * MIB - low) / Math.sqrt(6 * MIB)).toBeCloseTo(1.96, 2);
    expect((high - 6 * MIB) / Math.sqrt(6 * MIB)).toBeCloseTo(1.96, 2);
    expect(sites.map(({ liveBytes }) => liveBytes)).toEqual([6 * MIB, 3 * MIB]);
  });

  test("at the peak, the live figures are the peak's", () => {
    const { sites, atMs } = summarize(small, "peak");
    expect(atMs).toBe(START_MS + 2900);
    expect(sites.every((site) => site.liveBytes === site.liveBytesAtPeak)).toBe(true);
  });

  test("at a time: the snapshot before it", () => {
    expect(summarize(small, START_MS + 1500)).toMatchObject({ atMs: START_MS + 1000 });
    expect(() => summarize(small, START_MS - HOUR)).toThrow(/TM-E014.*it covers/);
    expect(() => summarize(small, START_MS + HOUR)).toThrow(/TM-E014/);
  });
});

/** The recording with other values of a few of its properties. */
function smallWith(changes: Partial<Recording>): Recording {
  return new Proxy(small, {
    get(recording, name) {
      const value = Reflect.get(Object.hasOwn(changes, name) ? changes : recording, name);
      return typeof value === "function" ? value.bind(recording) : value;
    },
  });
}

describe("PSS of a tree", () => {
  /** Its only reading of PSS is the poll with that number; RSS grows from 10 MiB by 10 MiB a poll. */
  const readAt = (poll: number): Recording => {
    const timesMs = Float64Array.from({ length: 6 }, (_, n) => START_MS + n * 1000);
    const readings = (value: (n: number) => number) => timesMs.map((_, n) => value(n));
    const [root, ...others] = small.series;
    const values = new Map<Metric, Float64Array>([
      ["treeRssBytes", readings((n) => (n + 1) * 10 * MIB)],
      ["treePssBytes", readings((n) => (n === poll ? (n + 1) * 8 * MIB : Number.NaN))],
    ]);
    return smallWith({ series: [{ ...present(root), timesMs, values }, ...others] });
  };

  test("is the headline if it was read near the peak of RSS", () => {
    expect(summarize(readAt(4), "end").pss).toMatchObject({ peakBytes: 40 * MIB });
  });

  test("is left out if it was only read when the processes were small", () => {
    expect(summarize(readAt(0), "end").pss).toBeUndefined();
  });
});

describe("upper bound for unlisted sites", () => {
  /** The recording with a coarse period from its 500th ms to its 700th. */
  const coarse = (): Recording =>
    smallWith({
      events: [
        { timeMs: START_MS + 500, pid: 101, kind: "period", detail: "", value: 4 * MIB },
        { timeMs: START_MS + 700, pid: 101, kind: "period", detail: "", value: 65536 },
      ],
    });
  const inPeriods = (recording: Recording, moment: Moment, period: number) =>
    (summarize(recording, moment).agent.unseenUpToBytes ?? 0) / period;

  test("uses the longest period until then", () => {
    expect(inPeriods(small, "end", small.meta.periodBytes)).toBeCloseTo(3.69, 2);
    expect(inPeriods(coarse(), "end", 4 * MIB)).toBeCloseTo(3.69, 2);
    expect(inPeriods(coarse(), START_MS + 1500, 4 * MIB)).toBeCloseTo(3.69, 2);
  });

  test("later sampling periods do not count", () => {
    const [first] = small.snapshots;
    const later = {
      timeMs: START_MS + 2000,
      pid: 101,
      kind: "period",
      detail: "",
      value: 4 * MIB,
    } as const;
    const recording = smallWith({ events: [later] });
    expect(inPeriods(recording, first?.timeMs ?? 0, small.meta.periodBytes)).toBeCloseTo(3.69, 2);
  });
});

describe("figures of the whole run", () => {
  test("RSS: the kernel's high-water mark counts if it is above every poll", () => {
    expect(summarize(small, "end").rss).toMatchObject({ peakBytes: 77 * MIB, endBytes: 33 * MIB });
  });

  test("RSS: a high-water mark well above every poll has no time of its own; one slightly above belongs to a poll", () => {
    expect(summarize(small, "end").rss).toMatchObject({
      peakMs: small.endMs,
      peakAfterMs: small.startMs,
    });
    const polled = small.series[0]?.values.get("treeRssBytes") ?? new Float64Array();
    const highest = Math.max(...[...polled].filter((value) => !Number.isNaN(value)));
    const end = small.end && { ...small.end, maxRssBytes: highest + 65536 };
    const lagging = smallWith({ end });
    expect(summarize(lagging, "end").rss).toEqual({
      peakBytes: highest + 65536,
      peakMs: small.series[0]?.timesMs[polled.indexOf(highest)],
      endBytes: 33 * MIB,
    });
  });

  test("RSS: a high-water mark was reached between the poll that read it and the one before", () => {
    const [root, ...others] = small.series;
    const { timesMs, values } = present(root);
    const rssOf = (first: number) => {
      const marks = Float64Array.from(timesMs, (_, i) => (i < first ? 50 : 200) * MIB);
      const marked = new Map<Metric, Float64Array>([...values, ["vmHwmBytes", marks]]);
      const series = [{ ...present(root), values: marked }, ...others];
      return summarize(smallWith({ series }), "end").rss;
    };
    const [before = 0, at = 0] = timesMs;
    expect(rssOf(1)).toMatchObject({ peakBytes: 200 * MIB, peakMs: at, peakAfterMs: before });
    expect(rssOf(0)).toMatchObject({ peakMs: before, peakAfterMs: START_MS });
    const text = (peakMs: number, peakAfterMs: number) =>
      peakTimeText({ peakMs, peakAfterMs }, START_MS, (time) => `${time - START_MS} ms`);
    expect(text(START_MS + 400, START_MS + 200)).toBe("between 200 ms and 400 ms");
    expect(text(START_MS + 400, START_MS)).toBe("before 400 ms");
    expect(text(START_MS + 5, START_MS - 60_000)).toBe("before the recording began");
  });

  test("processes, with those that have no profile named in the limits", () => {
    const { processes, limits, agent } = summarize(small, "end");
    expect(processes).toMatchObject([
      { pid: 100, python: "3.11.7", profiled: true, peakRssBytes: 30 * MIB, endRssBytes: 30 * MIB },
      { pid: 101, command: ["sleep"], profiled: false, endRssBytes: MIB },
    ]);
    expect(limits.at(-1)).toMatch(/1 of 2 processes has no profile \(sleep\)/);
    expect(agent).toMatchObject({ periodBytes: 65536, samples: 300, lost: 2, cpuMs: 3 });
    expect(agent.allocatedBytesPerSecond).toBeCloseTo(9 * MIB, 3);
  });

  test("a process that started and ended between two readings has no figures, instead of zeros", () => {
    const unread = smallWith({
      series: small.series.map((series, n) =>
        n === 0 ? series : { ...series, values: new Map() },
      ),
    });
    expect(summarize(unread, "end").processes).toMatchObject([
      { pid: 100, peakRssBytes: 30 * MIB, endRssBytes: 30 * MIB },
      { pid: 101, peakRssBytes: null, endRssBytes: null },
    ]);
  });

  test("brief steps of a launcher that never ran Python are neither listed nor missed", () => {
    const lived = (ms: number) =>
      smallWith({
        processes: small.processes.map((process, n) =>
          n === 0 ? process : { ...process, startedMs: START_MS, endedMs: START_MS + ms },
        ),
      });
    const { processes, limits } = summarize(lived(300), "end");
    expect(processes.map(({ pid }) => pid)).toEqual([100]);
    expect(limits.join()).not.toContain("no profile");
    expect(summarize(lived(2_000), "end").processes).toHaveLength(2);
  });

  test("a brief shell that started Python is listed, so that the tree has no gap", () => {
    const [root, shell] = small.processes;
    const brief = { ...present(shell), startedMs: START_MS, endedMs: START_MS + 300 };
    const python = { ...present(root), pid: 102, parentPid: brief.pid };
    const tree = smallWith({
      processes: [present(root), brief, python],
      series: [...small.series, present(small.series[0])],
    });
    expect(summarize(tree, "end").processes.map(({ pid }) => pid)).toEqual([100, 101, 102]);
  });

  test("no number is NaN, and everything is JSON", () => {
    for (const moment of ["end", "peak"] as const) {
      const text = JSON.stringify(summarize(small, moment));
      expect(text).not.toMatch(/null|NaN/);
    }
  });
});

describe("growth", () => {
  /** A run of an hour with a reading a minute of each given metric of the first process. */
  function grown(
    name: string,
    metrics: Partial<Record<Metric, (minute: number) => number>>,
    processes = 2,
  ) {
    const path = join(folder, name);
    const writer = new RecordingWriter(FileSink.open(path));
    writer.begin({
      tidemarkVersion: "0.1.0",
      command: ["app"],
      pid: 1,
      startedMs: START_MS,
      host: "",
      kernel: "",
      runId: "",
      periodBytes: 0,
      keeper: null,
      recorder: { pid: 0, startTicks: 0 },
    });
    const row = { series: 0, pid: 1, parentPid: 0, command: ["app"], python: "", profiled: false };
    writer.processes(
      START_MS,
      Array.from({ length: processes }, (_, series) => ({
        ...row,
        series,
        pid: 1 + series,
        startedMs: START_MS,
        endedMs: null,
      })),
    );
    for (let minute = 0; minute <= 60; minute++) {
      const timeMs = START_MS + minute * 60_000;
      const readings = Object.entries(metrics) as [Metric, (minute: number) => number][];
      writer.metrics(
        timeMs,
        readings.map(([metric, of]) => ({ timeMs, series: 0, metric, value: of(minute) })),
      );
    }
    writer.close();
    return summarize(openRecording(path), "end").series;
  }

  test("PSS at the end does not exceed the last RSS, although it is polled less often", () => {
    const series = grown("children ended", {
      treePssBytes: (m) => (m < 50 ? 300 * MIB : Number.NaN),
      treeRssBytes: (m) => (m < 55 ? 320 : 14) * MIB,
    });
    expect(series.treePssBytes).toBe(14 * MIB);
  });

  test("the baseline lies within the readings", () => {
    const series = grown("falls", { treePssBytes: (m) => (m < 30 ? 300 : 20) * MIB });
    expect(series.baselineBytes).toBeLessThanOrEqual(300 * MIB);
    expect(series.baselineBytes).toBeGreaterThanOrEqual(20 * MIB);
  });

  test("is the slope after the first third: start-up does not count", () => {
    const series = grown("leak", {
      treePssBytes: (m) => 100 * MIB + (m < 20 ? m * 50 * MIB : 1000 * MIB + (m - 20) * MIB),
    });
    expect(series.growthBytesPerHour).toBeCloseTo(60 * MIB, -2);
    expect(series.baselineBytes).toBeCloseTo(1100 * MIB, -2);
    expect(series).toMatchObject({
      startBytes: 100 * MIB,
      minBytes: 100 * MIB,
      points: 59,
      treePssBytes: 1140 * MIB,
    });
  });

  test("is zero if memory is level, despite spikes", () => {
    expect(
      grown("level", { treePssBytes: (m) => (m % 7 === 0 ? 900 : 200) * MIB }).growthBytesPerHour,
    ).toBe(0);
  });

  test("of a single process is that of its RSS, with the interval of the diagnosis", () => {
    const figures = {
      rssBytes: (m: number) => (100 + m) * MIB,
      treePssBytes: (m: number) => (300 + 2 * m) * MIB,
    };
    const series = grown("lone", figures, 1);
    expect(series.growthBytesPerHour).toBeCloseTo(60 * MIB, -2);
    expect(series.growthLowBytesPerHour).toBeLessThanOrEqual(series.growthBytesPerHour);
    expect(series.growthHighBytesPerHour).toBeGreaterThanOrEqual(series.growthBytesPerHour);
  });

  test("is that of RSS if PSS is not readable", () => {
    const series = grown("rss", { treeRssBytes: (m) => (100 + m) * MIB });
    expect(series.growthBytesPerHour).toBeCloseTo(60 * MIB, -2);
    expect(series.treePssBytes).toBe(0);
  });

  test("a recording without a profile has no sites, and reports that on request", async () => {
    grown("bare", { treeRssBytes: () => MIB });
    const recording = openRecording(join(folder, "bare"));
    expect(summarize(recording, "peak")).toMatchObject({
      sites: [],
      agent: { samples: 0, allocatedBytesPerSecond: 0 },
    });
    expect(() => recording.profileAt("end")).toThrow(/TM-E014/);
    expect(await buildReport(recording, noProgress)).toMatchObject({
      snapshots: [],
      tables: { processes: [] },
    });
  });
});

test("the peak of a process that the kernel killed is at least what it held then", () => {
  const path = join(folder, "killed.tidemark");
  writeSmallRecording(path, {
    memoryEnds: [100, 101].map((pid) => ({
      pid,
      timeMs: START_MS + 2500,
      cause: "cgroup",
      limitBytes: 512 * MIB,
      usedBytes: 511 * MIB,
      rssBytes: (pid + 300) * MIB,
      limit: "/docker/web",
      evidence: [],
    })),
  });
  const { rss, processes, memoryEnds = [] } = summarize(openRecording(path), "end");
  for (const { pid, rssBytes, sentence } of memoryEnds) {
    expect(processes.find((process) => process.pid === pid)?.peakRssBytes).toBe(rssBytes);
    expect(sentence).toContain(`${rssBytes / MIB} MiB resident in the process`);
  }
  expect(rss).toEqual({ peakBytes: 401 * MIB, peakMs: START_MS + 2500, endBytes: 400 * MIB });
});

test("live bytes are a part of what is resident only if they fit into it", () => {
  const sentenceAt = (rssBytes: number) => {
    const path = join(folder, `killed-at-${rssBytes}.tidemark`);
    writeSmallRecording(path, {
      memoryEnds: [
        {
          ...{ pid: 100, timeMs: START_MS + 2500, cause: "cgroup", limit: "/docker/web" },
          ...{ limitBytes: 512 * MIB, usedBytes: 511 * MIB, rssBytes, evidence: [] },
        },
      ],
    });
    return summarize(openRecording(path), "end").memoryEnds?.[0]?.sentence;
  };
  expect(sentenceAt(400 * MIB)).toMatch(/400 MiB resident in the process, of which /);
  expect(sentenceAt(4096)).toMatch(/resident in the process; live: /);
});

describe("report", () => {
  test("snapshots ascend, the last is the end, and all share the last one's tables", async () => {
    const report = await buildReport(small, noProgress);
    expect(report.title).toBe("small.tidemark");
    expect(report.snapshots.map(({ timeMs }) => timeMs)).toEqual(small.snapshotTimes);
    expect(report.tables.stacks.length).toBe(small.profileAt("end").stacks.length);
    expect(report.series).toBe(small.series);
  });

  test("every snapshot has the figures at the peak that the summary has", async () => {
    const sum = (values: ArrayLike<number>) => Array.from(values).reduce((a, b) => a + b, 0);
    const atPeak = sum(summarize(small, "end").sites.map((site) => site.liveBytesAtPeak));
    const { snapshots } = await buildReport(small, noProgress);
    for (const { sites } of snapshots) {
      expect(sum(sites.peakBytes)).toBe(atPeak);
    }
    expect(sum(snapshots.at(-1)?.sites.liveBytes ?? [])).toBe(
      sum(small.profileAt("end").sites.liveBytes),
    );
  });

  test("of many snapshots at most sixty, including the highest and the last", async () => {
    const path = join(folder, "many.tidemark");
    writeSmallRecording(path, { snapshots: 150 });
    const recording = openRecording(path);
    const { snapshots } = await buildReport(recording, noProgress);
    expect(snapshots.length).toBeLessThanOrEqual(60);
    expect(snapshots.length).toBeGreaterThan(50);
    expect(snapshots.at(-1)?.timeMs).toBe(recording.snapshotTimes.at(-1));
  });
});
