/** Services and their instances: which ones run, how much memory they use, and how fast it grows. */
import { Turns } from "../../../model/base/turns.js";
import type { Bytes, Millis, TimeMs } from "../../../model/base/units.js";
import type {
  FleetVerdictsJson,
  InstanceRowJson,
  ServiceJson,
  ServiceRowJson,
  ServicesJson,
} from "../../../model/documents/fleet_document.js";
import { MERGED_TIER, TIERS, type Tier } from "../../interface/tiers.js";
import type { Window } from "../../interface/window.js";
import { READ } from "../kept/kept_readings.js";
import type { RowReader, Rows } from "../row_database.js";
import { SOURCE_LABEL } from "../series_rows.js";
import { CARRY_MS, type OfSeries, windowValues, within } from "./gauge.js";
import { byProcess } from "./process_parts.js";
import { newestAtOnce, newestOf, type OfPrograms, sparklinesOf } from "./readings.js";

const MOST_EVENTS = 200;
/** A time after every stored day. */
const FAR_MS = Date.UTC(9999, 0, 1);
/** A verdict whose growth was not measured. */
export const UNMEASURED = "insufficient-evidence";
const NO_VERDICT = { kind: "none", confidence: 0, summary: "no verdict yet" } as const;
const NOT_DIAGNOSED = {
  ...NO_VERDICT,
  summary: "not diagnosed: its RSS is unknown",
} as const;

const OF_SERVICE = "s.service = $service";
const ALL: OfPrograms = { sql: "true", values: {}, service: null };
const ofService = (service: string): OfPrograms => ({
  ...{ sql: OF_SERVICE, values: { service } },
  service,
});

/** An instance with additional columns for its service's row. */
interface Instance {
  readonly service: string;
  readonly row: InstanceRowJson;
  readonly isRunning: boolean;
  /** When the recording began. */
  readonly recordedMs: TimeMs;
}

export async function servicesDocument(
  database: RowReader,
  window: Window,
  steps: number,
): Promise<ServicesJson> {
  const instances = await instancesIn(database, window, ALL);
  const sparklines = await sparklinesOf(database, window, steps, ALL);
  return {
    schema: "tidemark.services/1",
    window: { ...window },
    services: [...byService(instances)]
      .map(([service, rows]) => serviceRow(service, rows, sparklines.get(service) ?? []))
      .sort((a, b) => (a.service < b.service ? -1 : 1)),
  };
}

export async function serviceDocument(
  database: RowReader,
  service: string,
  window: Window,
  steps: number,
): Promise<ServiceJson | null> {
  const instances = await instancesOf(database, service, window);
  if (instances === null) {
    return null;
  }
  const sparklines = await sparklinesOf(database, window, steps, ofService(service));
  const rows = instances
    .slice()
    .sort((a, b) => Number(b.isRunning) - Number(a.isRunning) || b.row.rssBytes - a.row.rssBytes);
  return {
    schema: "tidemark.service/1",
    service,
    window: { ...window },
    summary: serviceRow(service, instances, sparklines.get(service) ?? []),
    instances: rows.map(({ row }) => row),
    events: await eventsOf(database, service, window),
    limits: [...limitsOf(instances), ...tierLimits(database, window)],
  };
}

/** In no order. null: no such service. */
export async function serviceInstances(
  database: RowReader,
  service: string,
  window: Window,
): Promise<InstanceRowJson[] | null> {
  const instances = await instancesOf(database, service, window);
  return instances?.map(({ row }) => row) ?? null;
}

async function instancesOf(
  database: RowReader,
  service: string,
  window: Window,
): Promise<Instance[] | null> {
  const [known] = await database.query(`SELECT count(*) AS n FROM series s WHERE ${OF_SERVICE}`, {
    service,
  });
  return Number(known?.n ?? 0) === 0 ? null : instancesIn(database, window, ofService(service));
}

export async function instanceRow(
  database: RowReader,
  stream: string,
): Promise<(InstanceRowJson & { readonly service: string }) | null> {
  const window = { startMs: 0, endMs: FAR_MS };
  const of = { sql: "s.stream = $stream", values: { stream } };
  const newest = await newestAtOnce(database, window, of);
  const [found] = await instancesFrom(database, window, of, newest);
  return found === undefined ? null : { ...found.row, service: found.service };
}

/** The verdicts of instances, the fastest growing first. */
export async function verdictsDocument(
  database: RowReader,
  window: Window,
  kind: string | undefined,
): Promise<FleetVerdictsJson> {
  const instances = await instancesIn(database, window, ALL);
  const verdicts = instances.flatMap(({ service, row, isRunning }) => {
    const { verdict, growthBytesPerHour: growth, stream, version, host, pod, pid, msToLimit } = row;
    const isWanted =
      verdict.kind !== NO_VERDICT.kind && (kind === undefined || verdict.kind === kind);
    const about = { service, version, stream, host, pod, pid, isRunning, msToLimit };
    return isWanted
      ? [{ ...about, ...verdict, ...(growth === undefined ? {} : { growthBytesPerHour: growth }) }]
      : [];
  });
  const growthOf = ({ growthBytesPerHour = 0 }: (typeof verdicts)[number]) => growthBytesPerHour;
  verdicts.sort((a, b) => growthOf(b) - growthOf(a));
  return { schema: "tidemark.fleet_verdicts/1", window: { ...window }, verdicts };
}

function byService(instances: readonly Instance[]): Map<string, Instance[]> {
  const groups = new Map<string, Instance[]>();
  for (const instance of instances) {
    const group = groups.get(instance.service) ?? [];
    group.push(instance);
    groups.set(instance.service, group);
  }
  return groups;
}

/** What is unknown from profiles of other profilers. */
function limitsOf(instances: readonly Instance[]): string[] {
  const sources = new Set(instances.flatMap(({ row }) => row.source ?? []));
  return [...sources]
    .sort()
    .map(
      (source) =>
        `Instances whose source is ${source} have no RSS: it, its parts, ages and holders are unknown, and so is what the source does not measure.`,
    );
}

/** What is coarser in the window than it was sent. */
function tierLimits(database: RowReader, { startMs, endMs }: Window): string[] {
  const days = database.daysIn(startMs, endMs);
  const coarse = TIERS.flatMap((tier) => {
    const day =
      tier === "raw" ? undefined : days.findLast((each) => database.tierOf(each) === tier);
    const rest = tier === MERGED_TIER ? "; single instances have no flame graph" : "";
    return day === undefined
      ? []
      : [`Until ${day}, figures are means of ${TIER_TEXT[tier]}${rest}.`];
  });
  return coarse.reverse();
}

const TIER_TEXT: Readonly<Record<Tier, string>> = {
  raw: "",
  "10m": "10 minutes",
  "1h": "an hour",
  "1d": "a day",
};

/** Recorded programs that reported within the window. */
async function instancesIn(
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
async function instancesFrom(
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
      return next === undefined
        ? part
        : { ...part, isRunning: false, row: { ...part.row, continuedAs: next.row.stream } };
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
  return {
    service: text("service"),
    recordedMs: number("recorded_ms"),
    isRunning:
      (ended === 0 || ended > endMs) && lastSeenMs >= Math.min(endMs, Date.now()) - CARRY_MS,
    row: {
      stream: text("stream"),
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
      ...(isKnown && row.kind !== UNMEASURED ? { growthBytesPerHour: number("growth") } : {}),
      limitBytes,
      ...(figure("high_bytes") > 0 ? { highBytes: figure("high_bytes") } : {}),
      msToLimit: timeToLimit(number("ms_to_limit"), {
        ...{ limitBytes, rssBytes: figure("rss"), growthBytesPerHour: number("growth") },
      }),
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

function serviceRow(
  service: string,
  all: readonly Instance[],
  sparkline: (number | null)[],
): ServiceRowJson {
  const running = all.filter(({ isRunning }) => isRunning).map(({ row }) => row);
  const shown = running.length > 0 ? running : newest(all);
  const measured = shown.filter((row) => row.growthBytesPerHour !== undefined);
  const growing = measured
    .slice()
    .sort((a, b) => (b.growthBytesPerHour ?? 0) - (a.growthBytesPerHour ?? 0));
  // If none was measured: a verdict that gives a reason, such as too little evidence.
  const worst = growing[0] ?? shown.find((row) => row.verdict.kind !== NO_VERDICT.kind) ?? shown[0];
  const times = running.map((row) => row.msToLimit).filter((ms) => ms > 0);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const isLimited = running.length > 0 && running.every((row) => row.limitBytes > 0);
  const isThrottled = running.length > 0 && running.every((row) => row.highBytes !== undefined);
  return {
    service,
    versions: [...new Set(shown.map((row) => row.version))].filter((name) => name !== "").sort(),
    instances: running.length,
    endedInstances: all.filter(({ row }) => row.continuedAs === undefined).length - running.length,
    rssBytes: sum(running.map((row) => row.rssBytes)),
    ...(measured.length === 0
      ? {}
      : { growthBytesPerHour: sum(measured.map((row) => row.growthBytesPerHour ?? 0)) }),
    limitBytes: isLimited ? sum(running.map((row) => row.limitBytes)) : 0,
    ...(isThrottled ? { highBytes: sum(running.map((row) => row.highBytes ?? 0)) } : {}),
    msToLimit: times.length === 0 ? 0 : Math.min(...times),
    verdict: {
      ...(worst?.verdict ?? NO_VERDICT),
      instances: shown.filter((row) => row.verdict.kind === worst?.verdict.kind).length,
    },
    sparkline,
    lastSeenMs: Math.max(0, ...all.map(({ row }) => row.lastSeenMs)),
  };
}

/** If none runs, the one that reported last. */
function newest(all: readonly Instance[]): InstanceRowJson[] {
  const rows = all.map(({ row }) => row).sort((a, b) => b.lastSeenMs - a.lastSeenMs);
  return rows.slice(0, 1);
}

async function eventsOf(
  database: RowReader,
  service: string,
  window: Window,
): Promise<ServiceJson["events"]> {
  const events = database.union("events", database.daysIn(window.startMs, window.endMs), {
    ...{ ...within(window), of: "s.service = $service" },
  });
  const rows = await database.query(
    `SELECT e.ts_ms, e.kind, e.body, s.stream, s.pid
    FROM ${events} e JOIN series s USING (series_id)
    WHERE s.service = $service AND e.ts_ms >= $start_ms AND e.ts_ms < $end_ms
      AND e.kind NOT IN ('step-begin', 'step-end', 'label', 'period')
    ORDER BY e.ts_ms DESC LIMIT ${MOST_EVENTS}`,
    { service, ...windowValues(window) },
  );
  return rows.map((row) => ({
    timeMs: Number(row.ts_ms),
    stream: String(row.stream),
    pid: Number(row.pid),
    kind: String(row.kind),
    detail: String(row.body),
  }));
}
