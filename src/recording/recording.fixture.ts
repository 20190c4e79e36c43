/** A small recording with every kind of frame, made by the real writer. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StackId } from "../model/base/units.js";
import type { MemoryEnd } from "../model/profile/memory_end.js";
import {
  COPIES_DOMAIN,
  FILES_DOMAIN,
  LIFETIME_BUCKETS,
  type ProfileSnapshot,
  type ProfileTables,
  type SiteTable,
} from "../model/profile/profile.js";
import { newSiteTable } from "../model/profile/site_columns.js";
import { ProfileTablesBuilder } from "../model/profile/tables_builder.js";
import { FileSink } from "./frames/file_sink.js";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "./frames/frames.js";
import { openRecording } from "./reader.js";
import type { HolderBatch, Recording } from "./types.js";
import { RecordingWriter } from "./writer.js";

export const START_MS = 1_700_000_000_000;
const MIB = 2 ** 20;

/** The n-th profile of {@link writeSmallRecording}: two stacks, one of them new in each profile. */
export function smallSnapshot(
  builder: ProfileTablesBuilder,
  n: number,
): { tables: ProfileTables; snapshot: ProfileSnapshot } {
  const file = builder.string("/srv/app.py");
  const root = builder.stack(0, builder.frame(builder.string("main"), file, 10, 1, 0, 0));
  const leaf = builder.stack(
    root,
    builder.frame(builder.string(`load_${n}`), file, 100 + n, 90, 0, 0),
  );
  const sites = newSiteTable(2, 2);
  [root, leaf].forEach((stack, row) => {
    const bytes = (n + 1) * (row + 1) * MIB;
    sites.stack[row] = stack;
    sites.domain[row] = row;
    sites.liveBytes[row] = bytes;
    sites.liveObjects[row] = n + 1;
    sites.liveVariance[row] = bytes;
    sites.liveSamples[row] = 16;
    sites.allocatedBytes[row] = 3 * bytes;
    sites.allocatedObjects[row] = 3 * (n + 1);
    sites.allocatedVariance[row] = 4 * bytes;
    sites.peakBytes[row] = 1.5 * bytes;
    sites.peakObjects[row] = n + 2;
    sites.peakVariance[row] = 2 * bytes;
    sites.lifetimes[row * LIFETIME_BUCKETS + 3] = n;
    sites.cohortBytes[row * 2 + 1] = bytes;
  });
  const timeMs = START_MS + (n + 1) * 1000;
  const snapshot: ProfileSnapshot = {
    timeMs,
    durationMs: (n + 1) * 1000,
    sites,
    files: mappedFiles(root, n),
    copies: copiesOf(root, n),
    cohorts: [START_MS + 500, timeMs + 1],
    peakMs: [timeMs - 100],
  };
  return { tables: builder.tables(), snapshot };
}

/** One more copied mebibyte in each profile. */
function copiesOf(stack: StackId, n: number): SiteTable {
  const copies = newSiteTable(1, 2);
  copies.stack[0] = stack;
  copies.domain[0] = COPIES_DOMAIN;
  copies.allocatedBytes[0] = (n + 1) * MIB;
  copies.allocatedObjects[0] = n + 1;
  copies.allocatedVariance[0] = (n + 1) * MIB;
  return copies;
}

/** One more file in each profile, of a page each. */
function mappedFiles(stack: StackId, n: number): SiteTable {
  const files = newSiteTable(1, 2);
  files.stack[0] = stack;
  files.domain[0] = FILES_DOMAIN;
  files.liveBytes[0] = (n + 1) * 4096;
  files.liveObjects[0] = n + 1;
  files.liveSamples[0] = n + 1;
  files.allocatedBytes[0] = (n + 1) * 4096;
  files.allocatedObjects[0] = n + 1;
  files.cohortBytes[1] = (n + 1) * 4096;
  return files;
}

/** The result of the n-th lookup: the site's holder, which holds more each time. */
function smallLookup(n: number): HolderBatch {
  return {
    pid: 100,
    collector: { enabled: true, youngCount: 3, youngThreshold: 700 },
    rows: [
      {
        site: "100 python load app.py",
        madeAt: n === 0 ? null : n,
        looked: 48,
        held: 47,
        garbage: 1,
        graph: 0,
        path: ["module app", "history"],
        type: "list",
        retainedBytes: (n + 1) * MIB,
        entries: 100 * (n + 1),
        bound: 0,
        putters: [{ function: "History.keep", file: "/srv/app.py", line: 12, callers: ["load"] }],
      },
    ],
  };
}

/** Tables with the one process and thread of the profiles. */
export function newBuilder(): ProfileTablesBuilder {
  const builder = new ProfileTablesBuilder();
  const process = builder.addProcess({
    pid: 100,
    parentPid: 1,
    command: ["python", "app.py"],
    python: "3.11.7",
    startedMs: START_MS,
    periodBytes: 65536,
  });
  builder.addThread({ process, tid: 100, name: "MainThread", isMain: true });
  return builder;
}

export function writeSmallRecording(
  path: string,
  {
    snapshots = 3,
    end = true,
    memoryEnds = [],
  }: { snapshots?: number; end?: boolean; memoryEnds?: readonly MemoryEnd[] } = {},
): void {
  const writer = new RecordingWriter(FileSink.open(path));
  writer.begin({
    tidemarkVersion: "0.1.0",
    command: ["python", "app.py", "--name", "é"],
    pid: 100,
    startedMs: START_MS,
    host: "host",
    kernel: "6.1",
    runId: "00112233aabbccdd",
    periodBytes: 65536,
    keeper: null,
    recorder: { pid: 0, startTicks: 0 },
  });
  const row = { parentPid: 1, python: "3.11.7", profiled: true, endedMs: null };
  writer.processes(START_MS, [
    { ...row, series: 0, pid: 100, command: ["python", "app.py"], startedMs: START_MS },
    {
      ...row,
      series: 1,
      pid: 101,
      command: ["sleep"],
      startedMs: START_MS + 10,
      profiled: false,
      python: "",
    },
  ]);
  writer.limits(START_MS, ["a limit of the recorder"]);
  const builder = newBuilder();
  for (let n = 0; n < snapshots; n++) {
    const timeMs = START_MS + n * 1000;
    writer.metrics(timeMs, [
      { timeMs, series: 0, metric: "rssBytes", value: (n + 1) * 10 * MIB },
      { timeMs, series: 0, metric: "treeRssBytes", value: (n + 1) * 11 * MIB },
      { timeMs, series: 1, metric: "rssBytes", value: MIB },
      ...(n % 2 === 0
        ? [{ timeMs, series: 0, metric: "treePssBytes" as const, value: (n + 1) * 9 * MIB }]
        : []),
    ]);
    writer.events(timeMs, [
      { timeMs, pid: 100, kind: "step-begin", detail: `step ${n}`, value: n },
      { timeMs, pid: 101, kind: "exec", detail: "no value" },
    ]);
    const { tables, snapshot } = smallSnapshot(builder, n);
    const last = end && n === snapshots - 1;
    writer.snapshot(tables, snapshot, {
      kind: last ? "end" : "poll",
      agent: { samples: 100 * (n + 1), lost: n, cpuMs: 1.5 * n, periodBytes: 65536 },
    });
    writer.agentLimits(timeMs, [`an agent's limit, ${n} times`]);
    writer.census(timeMs, {
      pid: 100,
      types: n === 0 ? ["str"] : ["app.Session", "str"],
      objects: Float64Array.from(n === 0 ? [50] : [10 * n, 50 + n]),
      bytes: Float64Array.from(n === 0 ? [MIB] : [n * MIB, 2 * MIB]),
    });
    writer.holders(timeMs, smallLookup(n));
  }
  if (end) {
    writer.processes(START_MS + snapshots * 1000, [
      {
        ...row,
        series: 1,
        pid: 101,
        command: ["sleep"],
        startedMs: START_MS + 10,
        endedMs: START_MS + 2500,
        profiled: false,
        python: "",
      },
    ]);
    writer.memoryEnds(START_MS + snapshots * 1000, memoryEnds);
    writer.end({
      timeMs: START_MS + snapshots * 1000,
      exitCode: 3,
      signal: null,
      maxRssBytes: 77 * MIB,
      userMs: 5,
      systemMs: 6,
    });
  }
  writer.close();
}

/** Where each frame of a recording ends. */
export function frameEnds(content: Buffer): number[] {
  const ends: number[] = [];
  for (let at = FILE_HEAD_BYTES; at < content.length; ) {
    at += FRAME_HEAD_BYTES + content.readUInt32LE(at);
    ends.push(at);
  }
  return ends;
}

/** A folder with the small recording, its bytes, and a way to open modified copies. */
export class SmallRecording {
  readonly folder = mkdtempSync(join(tmpdir(), "tidemark-recording-"));
  readonly bytes: Buffer;

  constructor() {
    const path = join(this.folder, "small.tidemark");
    writeSmallRecording(path);
    this.bytes = readFileSync(path);
  }

  open(content: Uint8Array): Recording {
    const path = join(this.folder, "case.tidemark");
    writeFileSync(path, content);
    return openRecording(path);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
