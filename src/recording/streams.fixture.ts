/** Recordings as bytes, for the tests of streams and stores: one program whose memory is described in a few lines. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TimeMs } from "../model/base/units.js";
import { profileOf } from "../model/profile/profile.fixture.js";
import { deviceMetric, type Metric } from "../model/profile/series.js";
import { ProfileTablesBuilder } from "../model/profile/tables_builder.js";
import type { ServiceIdentity } from "../model/wire/identity.js";
import { FileSink } from "./frames/file_sink.js";
import { RecordingWriter } from "./writer.js";

const AGENT = { samples: 4, lost: 0, cpuMs: 1, periodBytes: 65536 };

export interface StreamPlan {
  readonly service: string;
  readonly version?: string;
  readonly startedMs: TimeMs;
  /** The recording began so many ms after the program; left out: with it. */
  readonly recordedAfterMs?: number;
  /** Distinguishes programs of one service. */
  readonly pid: number;
  readonly pod?: string;
  /** Free labels. */
  readonly labels?: Readonly<Record<string, string>>;
  /** RSS in bytes at so many ms after the start. */
  readonly rss?: readonly (readonly [number, number])[];
  /** Other figures, in bytes at so many ms after the start. */
  readonly figures?: Readonly<Partial<Record<Metric, readonly (readonly [number, number])[]>>>;
  /** Figures of a child process that lives throughout. */
  readonly ofChild?: Readonly<Partial<Record<Metric, readonly (readonly [number, number])[]>>>;
  /** Of the child's end; left out: it still runs. */
  readonly childEndedAfterMs?: number;
  /** Profiles (profile.fixture.ts) at so many ms after the start; one at the program's end is its last. */
  readonly profiles?: readonly (readonly [number, string])[];
  /** The profiles are of the recorded program; left out: of another process of the recording. */
  readonly isProfiledItself?: true;
  /** The program's process was a shell first, which became the program by exec. */
  readonly wasShell?: true;
  /** Of its end, after the start; left out: it still runs. */
  readonly endedAfterMs?: number;
  /** As the kernel reports it at the end. */
  readonly maxRssBytes?: number;
  /** null: its end was not seen. Left out: 0. */
  readonly exitCode?: number | null;
  /** When the kernel killed one of its processes for memory, in ms after the start. */
  readonly killedAfterMs?: readonly number[];
  /** The same, because the machine was short of memory. */
  readonly killedByMachineAfterMs?: readonly number[];
  /** Fragmentation of its GPUs at the time of the last RSS. */
  readonly fragmentation?: readonly number[];
  /** The tool of an imported file without RSS. */
  readonly importedFrom?: string;
}

/** A file describes a program that has ended. */
function endedMsOf({ importedFrom, startedMs, endedAfterMs = 0 }: StreamPlan): TimeMs | null {
  return importedFrom === undefined ? null : startedMs + endedAfterMs;
}

/** The same in the second program of its process. */
function afterShell(profile: ReturnType<typeof profileOf>): typeof profile {
  const { processes, threads, sites } = profile;
  return {
    ...profile,
    processes: [...processes.map((each) => ({ ...each, command: ["sh"] })), ...processes],
    threads: threads.map((each) => ({ ...each, process: each.process + processes.length })),
    sites: { ...sites, process: sites.process.map((each) => each + processes.length) },
  };
}

/** The bytes of a recording. */
export function streamBytes(plan: StreamPlan): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-stream-"));
  const path = join(folder, "run.tidemark");
  const { startedMs, pid } = plan;
  const writer = new RecordingWriter(FileSink.open(path));
  const identity: ServiceIdentity = {
    service: plan.service,
    version: plan.version ?? "",
    env: "",
    namespace: "",
    workload: "",
    pod: plan.pod ?? "",
    container: "",
    labels: { ...plan.labels },
  };
  writer.begin({
    tidemarkVersion: "0",
    command: ["python", "app.py"],
    pid,
    startedMs: startedMs + (plan.recordedAfterMs ?? 0),
    host: "here",
    kernel: "6",
    runId: "ab",
    periodBytes: 65536,
    keeper: null,
    recorder: { pid: 1, startTicks: 1 },
    identity,
    ...(plan.importedFrom === undefined
      ? {}
      : { imported: { tool: plan.importedFrom, file: "a", unknown: ["rss"] } }),
  });
  const process = { series: 0, pid, parentPid: 1, command: ["python", "app.py"], python: "3.11.7" };
  writer.processes(startedMs, [
    { ...process, profiled: true, startedMs, endedMs: endedMsOf(plan) },
  ]);
  if (plan.ofChild !== undefined) {
    const child = { ...process, series: 1, pid: pid + 100_000, parentPid: pid };
    const after = plan.childEndedAfterMs;
    const endedMs = after === undefined ? null : startedMs + after;
    writer.processes(startedMs, [{ ...child, profiled: false, startedMs, endedMs }]);
  }
  const builder = new ProfileTablesBuilder();
  const snapshots = (plan.profiles ?? []).map(([afterMs, text]) => [afterMs, text] as const);
  const rss = plan.rss ?? [];
  const figures = { rssBytes: rss, treeRssBytes: rss, ...plan.figures };
  const metrics = new Map<number, [series: number, Metric, number][]>();
  for (const [series, all] of [figures, plan.ofChild ?? {}].entries()) {
    for (const [metric, readings] of Object.entries(all)) {
      for (const [afterMs, value] of readings ?? []) {
        metrics.set(afterMs, [...(metrics.get(afterMs) ?? []), [series, metric as Metric, value]]);
      }
    }
  }
  const moments = [
    ...[...metrics].map(([afterMs, read]) => ({ afterMs, read, text: "" })),
    ...snapshots.map(([afterMs, text]) => ({ afterMs, read: [], text })),
  ].sort((a, b) => a.afterMs - b.afterMs);
  for (const { afterMs, read, text } of moments) {
    const timeMs = startedMs + afterMs;
    if (text === "") {
      writer.metrics(
        timeMs,
        read.map(([series, metric, value]) => ({ timeMs, series, metric, value })),
      );
    } else {
      const made = profileOf(text.replace(/$/gm, ` pid=${pid}`), builder);
      const processes = made.processes.map((each) => ({ ...each, startedMs }));
      const own = plan.isProfiledItself === true ? { ...made, processes } : made;
      const profile = plan.wasShell === true ? afterShell(own) : own;
      const cohorts = [timeMs - 500, timeMs];
      const kind = afterMs === plan.endedAfterMs ? "end" : "poll";
      writer.snapshot(profile, { ...profile, timeMs, cohorts }, { kind, agent: AGENT });
    }
  }
  const lastMs = startedMs + (plan.rss?.at(-1)?.[0] ?? 0);
  const ratios = (plan.fragmentation ?? []).map(
    (value, device) =>
      ({
        timeMs: lastMs,
        series: 0,
        metric: deviceMetric(device, "fragmentationRatio"),
        value,
      }) as const,
  );
  if (ratios.length > 0) {
    writer.metrics(lastMs, ratios);
  }
  const kills = [
    ...(plan.killedAfterMs ?? []).map((afterMs) => [afterMs, "512 MiB"] as const),
    ...(plan.killedByMachineAfterMs ?? []).map((afterMs) => [afterMs, "the machine"] as const),
  ];
  for (const [afterMs, by] of kills) {
    const timeMs = startedMs + afterMs;
    const detail = `killed for memory by the kernel (${by})`;
    writer.events(timeMs, [{ timeMs, pid, kind: "oom-kill", detail }]);
  }
  if (plan.endedAfterMs !== undefined) {
    const timeMs = startedMs + plan.endedAfterMs;
    const { exitCode = 0, maxRssBytes = 0 } = plan;
    writer.end({ timeMs, exitCode, signal: null, userMs: 0, systemMs: 0, maxRssBytes });
  }
  writer.close();
  const bytes = readFileSync(path);
  rmSync(folder, { recursive: true });
  return bytes;
}
