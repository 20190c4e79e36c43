/** Reads batches of frames and checks them; a batch that no recorder can have written throws BatchError. */
import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import { IMPORTED_FIGURES, type ImportedSource, PRECISIONS } from "../model/profile/imported.js";
import { METRICS, type TimelineEvent } from "../model/profile/series.js";
import { joinedIdentity, type ServiceIdentity } from "../model/wire/identity.js";
import { checkIds, checkTable, demand, record } from "./batch_check.js";
import type {
  EndBatch,
  EventBatch,
  LimitBatch,
  MetaBatch,
  MetricBatch,
  ProcessBatch,
  ProfileBatch,
  SeriesRow,
} from "./batches.js";

const EVENT_KINDS = new Set<string>([
  "process-start",
  "process-end",
  "exec",
  "step-begin",
  "step-end",
  "label",
  "period",
  "oom-kill",
  "peak",
  "recorder",
  "gpu-snapshot",
  "limit",
] satisfies TimelineEvent["kind"][]);

const KNOWN_METRICS = new Set<string>(METRICS);

const IDENTITY = {
  service: "string",
  version: "string",
  env: "string",
  namespace: "string",
  workload: "string",
  pod: "string",
  container: "string",
} as const;

export function checkedMeta(batch: unknown): MetaBatch {
  checkTable(
    batch,
    {
      tidemarkVersion: "string",
      command: "strings",
      pid: "number",
      startedMs: "number",
      host: "string",
      kernel: "string",
      runId: "string",
      periodBytes: "number",
    },
    "meta",
  );
  const { keeper, recorder, identity, imported, sender } = record(batch, "meta");
  if (sender !== undefined) {
    checkTable(sender, { source: "string", key: "string" }, "sender");
  }
  checkTable(recorder, { pid: "number", startTicks: "number" }, "recorder");
  if (keeper !== null) {
    checkTable(keeper, { pid: "number", startTicks: "number", fd: "number" }, "keeper");
  }
  if (identity !== undefined) {
    checkTable(identity, IDENTITY, "identity");
    const labels = record((identity as ServiceIdentity).labels, "labels");
    demand(
      Object.values(labels).every((value) => typeof value === "string"),
      "a label is not text",
    );
  }
  if (imported !== undefined) {
    checkImported(imported);
  }
  // Whoever wrote the frame may have ignored the bounds.
  return {
    ...(batch as MetaBatch),
    ...(identity === undefined ? {} : { identity: joinedIdentity([identity as ServiceIdentity]) }),
  };
}

function checkImported(imported: unknown): void {
  checkTable(imported, { tool: "string", file: "string" }, "imported");
  const { folder = "", unknown, precision = "unknown", lines = [] } = imported as ImportedSource;
  checkTable({ folder }, { folder: "string" }, "imported");
  checkTable({ unknown }, { unknown: "strings" }, "imported");
  demand(
    unknown.every((figure) => IMPORTED_FIGURES.includes(figure)),
    "an unknown figure has no name",
  );
  demand(PRECISIONS.includes(precision), "the precision has no name");
  demand(Array.isArray(lines), "the figures of lines are not a list");
  for (const line of lines) {
    checkTable(
      line,
      {
        file: "string",
        function: "string",
        line: "number",
        peakBytes: "number?",
        copiedBytes: "number?",
      },
      "line",
    );
  }
}

/** `known`: number of processes so far; rows replace them or follow them. */
export function checkedProcesses(value: unknown, known: number): SeriesRow[] {
  checkTable(
    value,
    {
      series: "u32",
      pid: "u32",
      parentPid: "u32",
      command: "lists",
      python: "strings",
      profiled: "u8",
      startedMs: "f64",
      endedMs: "f64",
    },
    "processes",
  );
  const batch = value as ProcessBatch;
  if (batch.rank !== undefined) {
    checkTable(batch, { series: "u32", rank: "f64" }, "processes");
  }
  let next = known;
  return Array.from(batch.series, (series, i) => {
    demand(series <= next, `process ${series} does not follow on`);
    next = Math.max(next, series + 1);
    const endedMs = float64At(batch.endedMs, i);
    const rank = batch.rank === undefined ? Number.NaN : float64At(batch.rank, i);
    return {
      series,
      pid: uint32At(batch.pid, i),
      parentPid: uint32At(batch.parentPid, i),
      command: itemAt(batch.command, i),
      python: itemAt(batch.python, i),
      profiled: batch.profiled[i] === 1,
      startedMs: float64At(batch.startedMs, i),
      endedMs: Number.isNaN(endedMs) ? null : endedMs,
      ...(Number.isNaN(rank) ? {} : { rank }),
    };
  });
}

/** `processCount`: rows of the `series` table so far. */
export function checkedMetrics(value: unknown, processCount: number): MetricBatch {
  checkTable(value, { timeMs: "f64", series: "u32", name: "u8", value: "f64" }, "metrics");
  const batch = value as MetricBatch;
  checkTable({ names: batch.names }, { names: "strings" }, "metrics");
  demand(
    batch.names.every((name) => KNOWN_METRICS.has(name)),
    "a metric is unknown",
  );
  checkIds(batch.name, batch.names.length, "a metric's name");
  checkIds(batch.series, processCount, "a metric's process");
  demand(batch.timeMs.every(Number.isFinite), "a metric has no time");
  return batch;
}

export function checkedProfile(value: unknown): ProfileBatch {
  checkTable(
    value,
    { timeMs: "number", durationMs: "number", liveBytes: "number", kind: "string" },
    "profile",
  );
  const batch = value as ProfileBatch;
  demand(["poll", "peak", "end"].includes(batch.kind), "a profile's kind is unknown");
  checkTable(
    batch.agent,
    { samples: "number", lost: "number", cpuMs: "number", periodBytes: "number" },
    "profile.agent",
  );
  if (batch.receivedId !== undefined) {
    checkTable(batch, { receivedId: "string" }, "profile");
  }
  return batch;
}

export function checkedLimits(value: unknown): LimitBatch {
  checkTable(value, { from: "string", sentences: "strings" }, "limits");
  const batch = value as LimitBatch;
  demand(batch.from === "recorder" || batch.from === "agent", "limits have an unknown source");
  return batch;
}

export function checkedEvents(value: unknown): TimelineEvent[] {
  checkTable(
    value,
    { timeMs: "f64", pid: "u32", kind: "strings", detail: "strings", value: "f64" },
    "events",
  );
  const batch = value as EventBatch;
  return batch.kind.map((kind, i) => {
    const timeMs = float64At(batch.timeMs, i);
    demand(EVENT_KINDS.has(kind), `an event's kind is unknown: ${kind}`);
    demand(Number.isFinite(timeMs), "an event has no time");
    const number = float64At(batch.value, i);
    return {
      timeMs,
      pid: uint32At(batch.pid, i),
      kind: kind as TimelineEvent["kind"],
      detail: itemAt(batch.detail, i),
      ...(Number.isNaN(number) ? {} : { value: number }),
    };
  });
}

export function checkedEnd(value: unknown): EndBatch {
  checkTable(
    value,
    { timeMs: "number", exitCode: "number?", signal: "number?", maxRssBytes: "number" },
    "end",
  );
  return value as EndBatch;
}
