/** Services and their instances: which ones run, how much memory they use, and how fast it grows. */
import type {
  FleetVerdictsJson,
  InstanceRowJson,
  ServiceJson,
  ServiceRowJson,
  ServicesJson,
} from "../../../model/documents/fleet_document.js";
import { MERGED_TIER, TIERS, type Tier } from "../../interface/tiers.js";
import type { Window } from "../../interface/window.js";
import type { RowReader } from "../row_database.js";
import { windowValues, within } from "./gauge.js";
import {
  FAR_MS,
  type Instance,
  instancesFrom,
  instancesIn,
  NO_VERDICT,
  runs,
} from "./instances.js";
import { newestAtOnce, type OfPrograms, sparklinesOf } from "./readings.js";

const MOST_EVENTS = 200;
const OF_SERVICE = "s.service = $service";
const ALL: OfPrograms = { sql: "true", values: {}, service: null };
const ofService = (service: string): OfPrograms => ({
  ...{ sql: OF_SERVICE, values: { service } },
  service,
});

/** By service, ascending. */
export async function serviceVersions(database: RowReader): Promise<Map<string, string[]>> {
  const rows = await database.query("SELECT DISTINCT service, version FROM series ORDER BY ALL");
  const versions = new Map<string, string[]>();
  for (const row of rows) {
    const service = String(row.service);
    versions.set(service, [...(versions.get(service) ?? []), String(row.version)]);
  }
  return versions;
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
    .sort((a, b) => Number(runs(b.row)) - Number(runs(a.row)) || b.row.rssBytes - a.row.rssBytes);
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

/** The verdicts of instances: those that run first, then the fastest growing. */
export async function verdictsDocument(
  database: RowReader,
  window: Window,
  kind: string | undefined,
): Promise<FleetVerdictsJson> {
  const instances = await instancesIn(database, window, ALL);
  const verdicts = instances.flatMap(({ service, row }) => {
    const { verdict, growthBytesPerHour, endedMs, continuedAs } = row;
    const { stream, version, host, pod, pid, msToLimit, state, lastSeenMs } = row;
    const isWanted =
      verdict.kind !== NO_VERDICT.kind && (kind === undefined || verdict.kind === kind);
    return isWanted
      ? [
          {
            ...{ service, version, stream, host, pod, pid, msToLimit, state, lastSeenMs },
            isRunning: runs(row),
            ...verdict,
            ...(growthBytesPerHour === undefined ? {} : { growthBytesPerHour }),
            ...(endedMs === undefined ? {} : { endedMs }),
            ...(continuedAs === undefined ? {} : { continuedAs }),
          },
        ]
      : [];
  });
  const growthOf = ({ growthBytesPerHour = 0 }: (typeof verdicts)[number]) => growthBytesPerHour;
  verdicts.sort((a, b) => Number(b.isRunning) - Number(a.isRunning) || growthOf(b) - growthOf(a));
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

function serviceRow(
  service: string,
  all: readonly Instance[],
  sparkline: (number | null)[],
): ServiceRowJson {
  const rows = all.map(({ row }) => row);
  const count = (state: InstanceRowJson["state"]) =>
    rows.filter((row) => row.state === state).length;
  const running = rows.filter(runs);
  const shown = running.length > 0 ? running : newest(rows);
  const growing = shown
    .filter((row) => row.growthBytesPerHour !== undefined)
    .sort((a, b) => (b.growthBytesPerHour ?? 0) - (a.growthBytesPerHour ?? 0));
  const measured = growing.filter(runs);
  // If none was measured: a verdict that gives a reason, such as too little evidence.
  const worst = growing[0] ?? shown.find((row) => row.verdict.kind !== NO_VERDICT.kind) ?? shown[0];
  const times = running.map((row) => row.msToLimit).filter((ms) => ms > 0);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const isLimited = running.length > 0 && running.every((row) => row.limitBytes > 0);
  const isThrottled = running.length > 0 && running.every((row) => row.highBytes !== undefined);
  return {
    service,
    state: running.length > 0 ? "running" : count("silent") > 0 ? "silent" : "ended",
    versions: [...new Set(shown.map((row) => row.version))].filter((name) => name !== "").sort(),
    instances: running.length,
    endedInstances: count("ended"),
    silentInstances: count("silent"),
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
      ...(worst === undefined || worst.verdict.kind === NO_VERDICT.kind
        ? {}
        : { stream: worst.stream }),
    },
    sparkline,
    lastSeenMs: Math.max(0, ...rows.map((row) => row.lastSeenMs)),
  };
}

/** If none runs, the one that reported last. */
function newest(rows: readonly InstanceRowJson[]): InstanceRowJson[] {
  return rows
    .slice()
    .sort((a, b) => b.lastSeenMs - a.lastSeenMs)
    .slice(0, 1);
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
