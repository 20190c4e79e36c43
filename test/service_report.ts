/** A document for the tests of the report page: a service that leaks in one place. */

import { float64At } from "../src/model/base/columns.js";
import { present } from "../src/model/base/present.js";
import type { ReportDocument } from "../src/model/documents/report_document.js";
import {
  Domain,
  FrameKind,
  LIFETIME_BUCKETS,
  type ProfileSnapshot,
} from "../src/model/profile/profile.js";
import type { MemorySeries, Metric } from "../src/model/profile/series.js";
import { newSiteTable } from "../src/model/profile/site_columns.js";
import { ProfileTablesBuilder } from "../src/model/profile/tables_builder.js";

const START_MS = Date.UTC(2026, 0, 5, 9, 30);
const MIB = 1024 ** 2;
const COHORTS = 8;

interface Site {
  /** Root first: "function file:line", or "symbol (object)" of a native frame. */
  readonly stack: readonly string[];
  readonly domain: keyof typeof Domain;
  readonly thread: number;
  readonly label?: string;
  /** MiB at the start and at the end of the run. */
  readonly live: readonly [number, number];
  readonly allocated: number;
  readonly objectBytes: number;
  /** The lifetime bucket of most freed objects. */
  readonly lifetime: number;
  /** Allocated throughout the run (1) or at the start (0). */
  readonly keepsGrowing: number;
}

const MAIN = ["<module> /srv/app/serve.py:88", "main /srv/app/serve.py:61"];
const WORK = [...MAIN, "run /srv/app/worker.py:27", "handle /srv/app/worker.py:44"];

/** Live at the end: 512 MiB, of which `remember` holds 256. */
export const SERVICE_SITES: readonly Site[] = [
  {
    stack: [...WORK, "remember /srv/app/history.py:41"],
    domain: "python",
    thread: 0,
    label: "endpoint=/chat",
    live: [2, 256],
    allocated: 260,
    objectBytes: 640,
    lifetime: 12,
    keepsGrowing: 1,
  },
  {
    stack: [...MAIN, "load_model /srv/app/model.py:19", "read_weights /srv/app/model.py:33"],
    domain: "native",
    thread: 0,
    live: [128, 128],
    allocated: 192,
    objectBytes: 4 * MIB,
    lifetime: 11,
    keepsGrowing: 0,
  },
  {
    stack: [...MAIN, "load_model /srv/app/model.py:21", "open_index /srv/app/index.py:12"],
    domain: "mapped",
    thread: 0,
    live: [64, 64],
    allocated: 64,
    objectBytes: 64 * MIB,
    lifetime: 10,
    keepsGrowing: 0,
  },
  {
    stack: [
      ...WORK,
      "encode /srv/app/tokens.py:73",
      "_tokenize /usr/lib/python3/dist-packages/tokens/core.py:210",
    ],
    domain: "python",
    thread: 1,
    label: "endpoint=/chat",
    live: [20, 40],
    allocated: 2600,
    objectBytes: 88,
    lifetime: 3,
    keepsGrowing: 0.3,
  },
  {
    stack: [
      ...WORK,
      "embed /srv/app/model.py:57",
      "matmul /usr/lib/python3/dist-packages/numpy/linalg.py:118",
    ],
    domain: "native",
    thread: 1,
    label: "endpoint=/embed",
    live: [12, 16],
    allocated: 9100,
    objectBytes: 512 * 1024,
    lifetime: 1,
    keepsGrowing: 0.1,
  },
  {
    stack: [
      ...WORK,
      "render /srv/app/reply.py:15",
      "dumps /usr/lib/python3.11/json/__init__.py:231",
    ],
    domain: "python",
    thread: 0,
    label: "endpoint=/chat",
    live: [6, 8],
    allocated: 1300,
    objectBytes: 240,
    lifetime: 0,
    keepsGrowing: 0.1,
  },
];

export interface ServiceChoices {
  readonly withPss?: boolean;
  readonly withSamples?: boolean;
}

/** Ten minutes of a service with one child, in eight snapshots. */
export function serviceReport({
  withPss = true,
  withSamples = true,
}: ServiceChoices = {}): ReportDocument {
  const builder = new ProfileTablesBuilder();
  const endMs = START_MS + 600_000;
  builder.addProcess({
    pid: 4242,
    parentPid: 1,
    command: ["python", "serve.py"],
    python: "3.11.7",
    startedMs: START_MS,
    periodBytes: 524288,
  });
  builder.addProcess({
    pid: 4250,
    parentPid: 4242,
    command: ["python", "-c", "worker"],
    python: "3.11.7",
    startedMs: START_MS + 60_000,
    periodBytes: 524288,
  });
  builder.addThread({ process: 0, tid: 4242, name: "MainThread", isMain: true });
  builder.addThread({ process: 0, tid: 4247, name: "pool-0", isMain: false });
  builder.addThread({ process: 1, tid: 4250, name: "MainThread", isMain: true });
  const rows = SERVICE_SITES.map((site) => ({
    site,
    stack: addStack(builder, site.stack),
    label: addLabel(builder, site.label),
  }));
  const snapshots = [0.02, 0.1, 0.22, 0.35, 0.5, 0.68, 0.84, 1].map((part) =>
    serviceSnapshot(rows, part),
  );
  const points = 600;
  const root = rootSeries(points, withPss);
  const series = [root, childSeries(points)];
  const rss = present(root.values.get("treeRssBytes"));
  const peakAt = rss.indexOf(Math.max(...rss));
  return {
    schema: "tidemark.report/1",
    title: "serve.tidemark",
    summary: {
      schema: "tidemark.summary/1",
      target: { pid: 4242, command: ["python", "serve.py"], python: "3.11.7", startedMs: START_MS },
      window: { startMs: START_MS, endMs, points },
      atMs: endMs,
      rss: {
        peakBytes: float64At(rss, peakAt),
        peakMs: float64At(root.timesMs, peakAt),
        endBytes: float64At(rss, points - 1),
      },
      processes: [
        {
          pid: 4242,
          parentPid: 1,
          command: ["python", "serve.py"],
          python: "3.11.7",
          peakRssBytes: 590 * MIB,
          endRssBytes: 580 * MIB,
          profiled: true,
        },
        {
          pid: 4250,
          parentPid: 4242,
          command: ["python", "-c", "worker"],
          python: "3.11.7",
          peakRssBytes: 40 * MIB,
          endRssBytes: 40 * MIB,
          profiled: true,
        },
        {
          pid: 4261,
          parentPid: 4242,
          command: ["/bin/sh", "-c", "nvidia-smi"],
          python: "",
          peakRssBytes: 2 * MIB,
          endRssBytes: 0,
          profiled: false,
        },
      ],
      sites: withSamples
        ? SERVICE_SITES.map((site) => ({
            stack: [...site.stack].reverse().map(frameJson),
            domain: site.domain,
            liveBytes: site.live[1] * MIB,
            liveObjects: (site.live[1] * MIB) / site.objectBytes,
            liveBytesAtPeak: site.live[1] * MIB,
            allocatedBytes: site.allocated * MIB,
            allocatedObjects: (site.allocated * MIB) / site.objectBytes,
            standardErrorBytes: Math.sqrt(site.live[1] * MIB * 524288),
            standardErrorAtPeakBytes: Math.sqrt(site.live[1] * MIB * 524288),
            standardErrorAllocatedBytes: Math.sqrt(site.allocated * MIB * 524288),
          }))
        : [],
      series: {
        startBytes: 60 * MIB,
        minBytes: 60 * MIB,
        baselineBytes: 250 * MIB,
        growthBytesPerHour: 1530 * MIB,
        growthLowBytesPerHour: 1500 * MIB,
        growthHighBytesPerHour: 1560 * MIB,
        points,
        treePssBytes: withPss ? 570 * MIB : 0,
      },
      agent: {
        periodBytes: 524288,
        samples: withSamples ? 27412 : 0,
        lost: 0,
        cpuMs: 410,
        allocatedBytesPerSecond: 22.5 * MIB,
      },
      limits: [
        "1 process ran without the agent: /bin/sh (pid 4261) was started with a cleared environment",
        "open files of pid 4261 could not be read: it ended first",
      ],
    },
    series,
    events: [
      { timeMs: START_MS, pid: 4242, kind: "process-start", detail: "python serve.py" },
      { timeMs: START_MS + 60_000, pid: 4250, kind: "process-start", detail: "python -c worker" },
      {
        timeMs: START_MS + 120_000,
        pid: 4242,
        kind: "step-begin",
        detail: "warm-up done",
        value: 1,
      },
      { timeMs: START_MS + 300_000, pid: 4261, kind: "process-end", detail: "exit status 0" },
      {
        timeMs: START_MS + 480_000,
        pid: 4242,
        kind: "oom-kill",
        detail: "memory.events counted one",
      },
    ],
    tables: builder.tables(),
    snapshots: withSamples ? snapshots : [],
  };
}

function serviceSnapshot(
  rows: { site: Site; stack: number; label: number }[],
  part: number,
): ProfileSnapshot {
  const timeMs = START_MS + 600_000 * part;
  const sites = newSiteTable(rows.length, COHORTS);
  rows.forEach(({ site, stack, label }, row) => {
    const live = (site.live[0] + (site.live[1] - site.live[0]) * part) * MIB;
    const allocated = Math.max(site.allocated * MIB * part, live);
    sites.stack[row] = stack;
    sites.thread[row] = site.thread;
    sites.label[row] = label;
    sites.domain[row] = Domain[site.domain];
    sites.liveBytes[row] = sites.peakBytes[row] = live;
    sites.liveObjects[row] = sites.peakObjects[row] = live / site.objectBytes;
    sites.liveVariance[row] = sites.peakVariance[row] = live * 524288;
    sites.liveSamples[row] = live / 524288;
    sites.allocatedBytes[row] = allocated;
    sites.allocatedObjects[row] = allocated / site.objectBytes;
    sites.allocatedVariance[row] = allocated * 524288;
    for (let bucket = 0; bucket < LIFETIME_BUCKETS; bucket++) {
      const weight = Math.exp(-((bucket - site.lifetime) ** 2) / 3);
      sites.lifetimes[row * LIFETIME_BUCKETS + bucket] =
        ((allocated - live) / site.objectBytes) * weight * 0.33;
    }
    for (let cohort = 0; cohort < COHORTS; cohort++) {
      const even = 1 / COHORTS;
      sites.cohortBytes[row * COHORTS + cohort] =
        live * (site.keepsGrowing * even + (cohort === 0 ? 1 - site.keepsGrowing : 0));
    }
  });
  return {
    timeMs,
    durationMs: timeMs - START_MS,
    sites,
    files: newSiteTable(0, COHORTS),
    copies: newSiteTable(0, COHORTS),
    cohorts: Array.from(
      { length: COHORTS },
      (_, cohort) => START_MS + ((timeMs - START_MS) * (cohort + 1)) / COHORTS,
    ),
    peakMs: [timeMs, 0],
  };
}

function rootSeries(points: number, withPss: boolean): MemorySeries {
  const column = (of: (part: number, i: number) => number) =>
    Float64Array.from({ length: points }, (_, i) => of(i / (points - 1), i));
  const rss = (part: number, i: number) =>
    (60 + 190 * Math.min(1, part * 12) + 290 * part + 12 * Math.sin(i / 9) + (i === 505 ? 60 : 0)) *
    MIB;
  const values = new Map<Metric, Float64Array>([
    ["rssBytes", column(rss)],
    ["treeRssBytes", column((part, i) => rss(part, i) + (part > 0.1 ? 40 * MIB : 0))],
  ]);
  if (withPss) {
    values.set(
      "treePssBytes",
      column((part, i) => (i % 10 === 0 ? rss(part, i) * 0.94 : Number.NaN)),
    );
    values.set(
      "pssBytes",
      column((part, i) => (i % 10 === 0 ? rss(part, i) * 0.93 : Number.NaN)),
    );
  }
  return { pid: 4242, timesMs: column((part) => START_MS + 600_000 * part), values };
}

function childSeries(points: number): MemorySeries {
  const count = Math.round(points * 0.9);
  return {
    pid: 4250,
    timesMs: Float64Array.from({ length: count }, (_, i) => START_MS + 60_000 + i * 1000),
    values: new Map<Metric, Float64Array>([["rssBytes", new Float64Array(count).fill(40 * MIB)]]),
  };
}

function addStack(builder: ProfileTablesBuilder, frames: readonly string[]): number {
  return frames.reduce((stack, text) => {
    const { function: name, file, line } = frameJson(text);
    return builder.stack(
      stack,
      builder.frame(builder.string(name), builder.string(file), line, 0, FrameKind.python, 0),
    );
  }, 0);
}

function addLabel(builder: ProfileTablesBuilder, text: string | undefined): number {
  if (text === undefined) {
    return 0;
  }
  const [key = "", value = ""] = text.split("=");
  return builder.label(0, builder.string(key), builder.string(value));
}

function frameJson(text: string): { function: string; file: string; line: number; kind: "python" } {
  const [, name, file, line] = /^(.+) (.+):(\d+)$/.exec(text) as unknown as [
    string,
    string,
    string,
    string,
  ];
  return { function: name, file, line: Number(line), kind: "python" };
}
