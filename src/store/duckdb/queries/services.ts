/** Services and their instances: which ones run, how much memory they use, and how fast it grows. */
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
import type { RowReader, Rows } from "../row_database.js";
import { SHORTEST_CARRY_MS } from "../sample_rows.js";
import { SOURCE_LABEL } from "../series_rows.js";
import {
  CARRY_MS,
  firstValidOftenMs,
  metricNames,
  readingsSql,
  stepsSql,
  windowValues,
  within,
} from "./gauge.js";
import { byProcess } from "./process_parts.js";
import { byGroup, metricsIn, stepsOf, stepValues } from "./series.js";

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
  const instances = await instancesIn(database, window, "true", {});
  const sparklines = await sparklinesOf(database, window, steps, "true", {});
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
  const sparklines = await sparklinesOf(database, window, steps, OF_SERVICE, { service });
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
  return Number(known?.n ?? 0) === 0
    ? null
    : instancesIn(database, window, OF_SERVICE, { service });
}

export async function instanceRow(
  database: RowReader,
  stream: string,
): Promise<(InstanceRowJson & { readonly service: string }) | null> {
  const window = { startMs: 0, endMs: FAR_MS };
  const [found] = await instancesIn(database, window, "s.stream = $stream", { stream });
  return found === undefined ? null : { ...found.row, service: found.service };
}

/** The verdicts of instances, the fastest growing first. */
export async function verdictsDocument(
  database: RowReader,
  window: Window,
  kind: string | undefined,
): Promise<FleetVerdictsJson> {
  const instances = await instancesIn(database, window, "true", {});
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

/** When a row of the metrics `m` saw its program. A row of a coarser tier holds until its last reading is no longer valid;
 * figures other than these are valid long after a program has ended. */
const SEEN = `CASE WHEN m.carry_ms = 0 THEN m.ts_ms WHEN m.name IN ('treeRssBytes', 'liveBytes')
  THEN m.ts_ms + greatest(0, m.carry_ms - ${CARRY_MS}) END`;
/** The rows that say when, and what the page shows: in coarser tiers, a third of all. */
const SHOWN =
  "(m.carry_ms = 0 OR m.name IN ('treeRssBytes', 'liveBytes', 'cgroupLimitBytes', 'cgroupHighBytes'))";

/** When a row of the profiles `p` of another profiler saw its program. */
const TAKEN = `p.ts_ms + greatest(0, p.carry_ms - ${SHORTEST_CARRY_MS})`;

/** Recorded programs that reported within the window. */
async function instancesIn(
  database: RowReader,
  window: Window,
  condition: string,
  values: Record<string, string>,
): Promise<Instance[]> {
  // A row of a coarser tier holds until a later moment.
  const days = database.daysIn(firstValidOftenMs(window), window.endMs);
  const { fromMs, beforeMs } = within(window);
  const metrics = database.union("metrics", days, {
    ...{ validFromMs: fromMs, beforeMs, of: condition, newest: true },
  });
  const profiles = database.union("profiles", days, {
    ...{ validFromMs: fromMs, beforeMs, of: condition },
  });
  const rows = await database.query(
    // A materialized `root` does not filter the rows that are joined to it, which takes twice as long.
    `WITH root AS NOT MATERIALIZED (
        SELECT s.* FROM series s WHERE s.series_id = s.root_id AND (${condition})),
      reported AS (
        SELECT m.series_id,
          max(${SEEN}) AS last_ms,
          arg_max(m.value, m.ts_ms) FILTER (m.name = 'treeRssBytes') AS rss,
          max(m.most) FILTER (m.name = 'treeRssBytes') AS peak,
          arg_max(m.value, m.ts_ms) FILTER (m.name = 'cgroupLimitBytes') AS limit_bytes,
          arg_max(m.value, m.ts_ms) FILTER (m.name = 'cgroupHighBytes') AS high_bytes,
          NULL AS live
        FROM ${metrics} m JOIN root USING (series_id)
        WHERE ${SHOWN} AND m.ts_ms + m.carry_ms >= $start_ms AND m.ts_ms < $end_ms
        GROUP BY m.series_id
        HAVING max(${SEEN}) >= $start_ms
        UNION ALL
        SELECT p.series_id, max(${TAKEN}), NULL, NULL, NULL, NULL, arg_max(p.live_bytes, p.ts_ms)
        FROM ${profiles} p JOIN root USING (series_id)
        WHERE (p.ts_ms >= $start_ms OR p.ts_ms + p.carry_ms > $start_ms) AND p.ts_ms < $end_ms
          AND (p.ts_ms >= $start_ms OR root.ended_ms = 0 OR root.ended_ms > $start_ms)
          AND list_contains(root.label_keys, '${SOURCE_LABEL}')
        GROUP BY p.series_id
        UNION ALL -- files without times and stacks
        SELECT series_id, ended_ms, NULL, NULL, NULL, NULL, NULL FROM root
        WHERE ended_ms >= $start_ms AND ended_ms < $end_ms
          AND list_contains(label_keys, '${SOURCE_LABEL}')),
      readings AS (
        SELECT series_id, max(last_ms) AS last_ms, max(rss) AS rss, max(peak) AS peak,
          max(limit_bytes) AS limit_bytes, max(high_bytes) AS high_bytes, max(live) AS live
        FROM reported GROUP BY series_id),
      processes AS (
        SELECT root_id, count(*) AS n FROM series GROUP BY root_id)
    SELECT root.*, readings.*, processes.n AS processes,
      v.kind, v.confidence, v.summary, v.growth, v.limit_bytes AS verdict_limit, v.ms_to_limit
    FROM root JOIN readings USING (series_id)
      LEFT JOIN processes ON processes.root_id = root.series_id
      LEFT JOIN verdicts v ON v.stream = root.stream`,
    { ...windowValues(window), ...values },
  );
  return withoutContinued(rows.map((row) => instanceOf(row, window)));
}

/** Of the recordings of one process, only the last one may run; the others are marked. */
function withoutContinued(instances: readonly Instance[]): Instance[] {
  const partOf = ({ row, recordedMs }: Instance) => ({
    ...row,
    recordedMs,
    lastMs: row.lastSeenMs,
  });
  return byProcess(instances, partOf).flatMap((parts) =>
    parts.map((part, at): Instance => {
      const next = parts[at + 1];
      return next === undefined
        ? part
        : { ...part, isRunning: false, row: { ...part.row, continuedAs: next.row.stream } };
    }),
  );
}

function instanceOf(row: Rows[number], { endMs }: Window): Instance {
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
  const lastSeenMs = number("last_ms");
  const isKnown = row.kind !== null && row.kind !== undefined;
  const limitBytes = number("limit_bytes") || number("verdict_limit");
  return {
    service: text("service"),
    recordedMs: number("recorded_ms"),
    isRunning: ended === 0 && lastSeenMs >= Math.min(endMs, Date.now()) - CARRY_MS,
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
      rssBytes: number("rss"),
      peakRssBytes: number("peak"),
      processes: number("processes"),
      ...(isKnown && row.kind !== UNMEASURED ? { growthBytesPerHour: number("growth") } : {}),
      limitBytes,
      ...(number("high_bytes") > 0 ? { highBytes: number("high_bytes") } : {}),
      msToLimit: timeToLimit(number("ms_to_limit"), {
        ...{ limitBytes, rssBytes: number("rss"), growthBytesPerHour: number("growth") },
      }),
      verdict: isKnown
        ? { kind: text("kind"), confidence: number("confidence"), summary: text("summary") }
        : source === undefined
          ? NO_VERDICT
          : NOT_DIAGNOSED,
      labels: free,
      ...(source === undefined
        ? {}
        : { source, ...(number("live") > 0 ? { liveBytes: number("live") } : {}) }),
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

async function sparklinesOf(
  database: RowReader,
  window: Window,
  steps: number,
  where: string,
  values: Record<string, string>,
): Promise<Map<string, (number | null)[]>> {
  const stepMs = Math.max(1, Math.ceil((window.endMs - window.startMs) / steps));
  const reach = { firstMs: firstValidOftenMs(window), endMs: window.endMs };
  const metrics = metricsIn(database, reach, { names: metricNames("rssBytes"), of: where });
  const readings = readingsSql("rssBytes", { metrics, where });
  const count = stepsOf(window, stepMs);
  const rows = await database.query(stepsSql(readings, { group: "s.service", over: "reported" }), {
    ...windowValues(window),
    first_ms: BigInt(reach.firstMs),
    ...stepValues(stepMs, count),
    ...values,
  });
  return byGroup(rows, count);
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
