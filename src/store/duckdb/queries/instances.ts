/** Recorded programs that reported within a window, each with its newest figures, its state and its verdict. */
import { Turns } from "../../../model/base/turns.js";
import type { Bytes, Millis, TimeMs } from "../../../model/base/units.js";
import type { InstanceRowJson } from "../../../model/documents/fleet_document.js";
import type { Window } from "../../interface/window.js";
import { READ } from "../kept/kept_readings.js";
import type { RowReader, Rows } from "../row_database.js";
import { SOURCE_LABEL } from "../series_rows.js";
import { CARRY_MS, type OfSeries, windowValues } from "./gauge.js";
import { byProcess } from "./process_parts.js";
import { newestOf, type OfPrograms } from "./readings.js";

/** A time after every stored day. */
export const FAR_MS = Date.UTC(9999, 0, 1);
/** A verdict whose growth was not measured. */
export const UNMEASURED = "insufficient-evidence";
export const NO_VERDICT = { kind: "none", confidence: 0, summary: "no verdict yet" } as const;
const NOT_DIAGNOSED = {
  ...NO_VERDICT,
  summary: "not diagnosed: its RSS is unknown",
} as const;

/** An instance with additional columns for its service's row. */
export interface Instance {
  readonly service: string;
  readonly row: InstanceRowJson;
  /** When the recording began. */
  readonly recordedMs: TimeMs;
}

/** Recorded programs that reported within the window. */
export async function instancesIn(
  database: RowReader,
  window: Window,
  of: OfPrograms,
): Promise<Instance[]> {
  // In a short window, there may be no reading; the one before it is valid.
  const startMs = Math.min(window.startMs, Math.max(0, window.endMs - CARRY_MS));
  const newest = await newestOf(database, { ...window, startMs }, of);
  const instances = await instancesFrom(database, window, of, newest);
  return instances.filter(({ row: { endedMs } }) => (endedMs ?? FAR_MS) >= window.startMs);
}

/** `newest`: what they reported (readings.ts), by series. */
export async function instancesFrom(
  database: RowReader,
  window: Window,
  { sql, values }: OfSeries,
  newest: ReadonlyMap<bigint, readonly number[]>,
): Promise<Instance[]> {
  const rows = await database.query(
    `SELECT root.*, reported.file_ms,
      CASE WHEN root.ended_ms = 0 THEN processes.running ELSE processes.n END AS processes,
      v.kind, v.confidence, v.summary, v.growth, v.limit_bytes AS verdict_limit, v.ms_to_limit
    FROM series root JOIN (
        SELECT series_id, max(file_ms) AS file_ms FROM (
          SELECT unnest([${[...newest.keys()].join(", ")}]::UBIGINT[]) AS series_id, 0 AS file_ms
          UNION ALL -- files without times and stacks
          SELECT s.series_id, s.ended_ms FROM series s
          WHERE s.series_id = s.root_id AND s.ended_ms >= $start_ms AND s.ended_ms < $end_ms
            AND list_contains(s.label_keys, '${SOURCE_LABEL}') AND (${sql}))
        GROUP BY series_id) reported USING (series_id)
      LEFT JOIN (
        SELECT root_id, count(*) AS n, count(*) FILTER (ended_ms = 0) AS running
        FROM series GROUP BY root_id) processes
        ON processes.root_id = root.series_id
      LEFT JOIN verdicts v ON v.stream = root.stream
    ORDER BY root.started_ms, root.series_id`,
    { ...windowValues(window), ...values },
  );
  const instances = await new Turns().map(rows, (row) =>
    instanceOf(row, newest.get(row.series_id as bigint) ?? [], window),
  );
  return withoutContinued(instances);
}

/** Of the recordings of one process, only the last one may run; the others are marked. */
function withoutContinued(instances: readonly Instance[]): Instance[] {
  const partOf = ({ service, row, recordedMs }: Instance) => {
    const { host, pod, container, pid, startedMs, lastSeenMs: lastMs } = row;
    return { service, host, pod, container, pid, startedMs, recordedMs, lastMs };
  };
  return byProcess(instances, partOf).flatMap((parts) =>
    parts.map((part, at): Instance => {
      const next = parts[at + 1];
      const continued = { state: "continued", msToLimit: 0 } as const;
      return next === undefined
        ? part
        : { ...part, row: { ...part.row, ...continued, continuedAs: next.row.stream } };
    }),
  );
}

/** `figures`: in the order of {@link READ}. */
function instanceOf(row: Rows[number], figures: readonly number[], { endMs }: Window): Instance {
  const figure = (name: (typeof READ)[number]) => figures[READ.indexOf(name)] || 0;
  const text = (name: string) => String(row[name] ?? "");
  const number = (name: string) => Number(row[name] ?? 0);
  const list = (name: string) => (row[name] as { items: readonly unknown[] }).items.map(String);
  const keys = list("label_keys");
  const labels = Object.fromEntries(list("label_vals").map((value, at) => [keys[at], value]));
  const {
    command = "",
    python = "",
    [SOURCE_LABEL]: source,
    ...free
  } = labels as Record<string, string>;
  const ended = number("ended_ms");
  const lastSeenMs = Math.max(figure("last_ms"), number("file_ms"));
  const isKnown = row.kind !== null && row.kind !== undefined;
  const limitBytes = figure("limit_bytes") || number("verdict_limit");
  const isRecent = lastSeenMs >= Math.min(endMs, Date.now()) - CARRY_MS;
  const state = ended !== 0 && ended <= endMs ? "ended" : isRecent ? "running" : "silent";
  const growthBytesPerHour = number("growth");
  return {
    service: text("service"),
    recordedMs: number("recorded_ms"),
    row: {
      stream: text("stream"),
      state,
      version: text("version"),
      env: text("env"),
      host: text("host"),
      pod: text("pod"),
      container: text("container"),
      pid: number("pid"),
      command,
      python,
      startedMs: number("started_ms"),
      ...(ended === 0 ? {} : { endedMs: ended }),
      lastSeenMs,
      rssBytes: figure("rss"),
      peakRssBytes: figure("peak"),
      processes: number("processes"),
      ...(isKnown && row.kind !== UNMEASURED ? { growthBytesPerHour } : {}),
      limitBytes,
      ...(figure("high_bytes") > 0 ? { highBytes: figure("high_bytes") } : {}),
      msToLimit:
        state === "running"
          ? timeToLimit(number("ms_to_limit"), {
              ...{ limitBytes, rssBytes: figure("rss"), growthBytesPerHour },
            })
          : 0,
      verdict: isKnown
        ? { kind: text("kind"), confidence: number("confidence"), summary: text("summary") }
        : source === undefined
          ? NO_VERDICT
          : NOT_DIAGNOSED,
      labels: free,
      ...(source === undefined
        ? {}
        : { source, ...(figure("live") > 0 ? { liveBytes: figure("live") } : {}) }),
    },
  };
}

export function runs({ state }: InstanceRowJson): boolean {
  return state === "running";
}

/** What the verdict said when it was made, with what has been used since. 0: it named no time. */
function timeToLimit(
  said: Millis,
  about: {
    readonly limitBytes: Bytes;
    readonly rssBytes: Bytes;
    readonly growthBytesPerHour: number;
  },
): Millis {
  const { limitBytes, rssBytes, growthBytesPerHour } = about;
  const isComputed = said > 0 && growthBytesPerHour > 0 && rssBytes > 0 && limitBytes > 0;
  return isComputed
    ? Math.max(1, ((limitBytes - rssBytes) / growthBytesPerHour) * 3_600_000)
    : said;
}
