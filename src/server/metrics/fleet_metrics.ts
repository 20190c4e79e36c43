/** What `/metrics` reports about the fleet: one row for each service and version, and one for each service with kills. */
import type { Store, VersionGauges } from "../../store/index.js";
import type { ForecastBook } from "../forecasts/forecast_book.js";
import type { MetricFamily } from "./exposition.js";

/** Services and versions with rows of their own, the largest ones; the others are summed. */
const MOST_ROWS = 1000;
const OVERFLOW = "__overflow__";
const LONGEST_LABEL = 200;

type Counts = Readonly<Record<string, number>>;

export async function fleetMetrics(store: Store): Promise<MetricFamily[]> {
  const rows = bounded(await store.versionGauges(Date.now()));
  const gauge = (
    name: string,
    help: string,
    figure: (row: VersionGauges) => number | null,
  ): MetricFamily => ({
    name,
    help,
    type: "gauge",
    values: rows.flatMap((row) => {
      const value = figure(row);
      return value === null ? [] : [{ labels: labelsOf(row), value }];
    }),
  });
  const byName = (
    name: string,
    help: string,
    label: string,
    valuesOf: (row: VersionGauges) => Counts,
  ): MetricFamily => ({
    name,
    help,
    type: "gauge",
    values: rows.flatMap((row) =>
      Object.entries(valuesOf(row)).map(([key, value]) => ({
        labels: { ...labelsOf(row), [label]: key },
        value,
      })),
    ),
  });
  const secondsOf = ({ msToLimit }: VersionGauges) =>
    msToLimit === null ? null : msToLimit / 1000;
  return [
    gauge("tidemark_instances", "Instances that run.", (row) => row.instances),
    gauge("tidemark_rss_bytes", "RSS of instances and their children.", (row) => row.rssBytes),
    gauge("tidemark_pss_bytes", "PSS of instances and their children.", (row) => row.pssBytes),
    gauge(
      "tidemark_live_bytes",
      "Live bytes by the samples of profiles, of the instances with a profile.",
      (row) => row.liveBytes,
    ),
    gauge(
      "tidemark_profiled_instances",
      "Instances that have a profile: live bytes and flame graphs are sums over these.",
      (row) => row.profiledInstances,
    ),
    gauge(
      "tidemark_device_bytes",
      "GPU memory of instances and their children, as the driver counts it.",
      (row) => row.deviceBytes,
    ),
    gauge(
      "tidemark_requests_per_second",
      "Requests of instances that count them.",
      (row) => row.requestsPerSecond,
    ),
    byName("tidemark_part_bytes", "RSS by part of the ledger.", "part", (row) => row.parts),
    gauge(
      "tidemark_growth_bytes_per_hour",
      "Growth of RSS by the verdicts, sum over the instances that run.",
      (row) => row.growthBytesPerHour,
    ),
    gauge("tidemark_limit_bytes", "Sum of the control groups' limits.", (row) => row.limitBytes),
    gauge("tidemark_limit_seconds", "Time until the first instance reaches its limit.", secondsOf),
    byName(
      "tidemark_verdict_instances",
      "Instances by the kind of their verdict.",
      "kind",
      (row) => row.verdicts,
    ),
  ];
}

/** How often the kernel killed processes for memory, and whether the diagnosis had forecast it. */
export function killMetrics(book: ForecastBook): MetricFamily {
  const counts = new Map<string, [within: number, outside: number, none: number]>();
  const services = book.services.map((name) => ({ name, kills: book.recordOf(name) }));
  services.sort((a, b) => (b.kills?.count ?? 0) - (a.kills?.count ?? 0));
  for (const [at, { name, kills }] of services.entries()) {
    if (kills !== null) {
      const service = at < MOST_ROWS ? name.slice(0, LONGEST_LABEL) : OVERFLOW;
      const [within, outside, none] = counts.get(service) ?? [0, 0, 0];
      const { count, forecast, withinInterval } = kills;
      counts.set(service, [
        within + withinInterval,
        outside + forecast - withinInterval,
        none + count - forecast,
      ]);
    }
  }
  return {
    name: "tidemark_kills",
    help: "Kills for memory within two weeks, by what had been forecast.",
    type: "gauge",
    values: [...counts].flatMap(([service, figures]) =>
      ["within", "outside", "none"].map((forecast, at) => ({
        labels: { service, forecast },
        value: figures[at] as number,
      })),
    ),
  };
}

function labelsOf({ service, version }: VersionGauges): Record<string, string> {
  return { service: service.slice(0, LONGEST_LABEL), version: version.slice(0, LONGEST_LABEL) };
}

function bounded(rows: readonly VersionGauges[]): VersionGauges[] {
  const sorted = [...rows].sort((a, b) => sizeOf(b) - sizeOf(a));
  const [rest, ...others] = sorted.slice(MOST_ROWS);
  return rest === undefined
    ? sorted
    : [
        ...sorted.slice(0, MOST_ROWS),
        { ...others.reduce(sumOf, rest), service: OVERFLOW, version: "" },
      ];
}

function sizeOf({ rssBytes, liveBytes }: VersionGauges): number {
  return Math.max(rssBytes ?? 0, liveBytes ?? 0);
}

function sumOf(a: VersionGauges, b: VersionGauges): VersionGauges {
  const sum = (x: number | null, y: number | null) => (x === null ? y : y === null ? x : x + y);
  const counts = (x: Counts, y: Counts) =>
    Object.fromEntries(
      [...new Set([...Object.keys(x), ...Object.keys(y)])].map((key) => [
        key,
        (x[key] ?? 0) + (y[key] ?? 0),
      ]),
    );
  return {
    service: a.service,
    version: a.version,
    instances: a.instances + b.instances,
    profiledInstances: a.profiledInstances + b.profiledInstances,
    rssBytes: sum(a.rssBytes, b.rssBytes),
    pssBytes: sum(a.pssBytes, b.pssBytes),
    deviceBytes: sum(a.deviceBytes, b.deviceBytes),
    requestsPerSecond: sum(a.requestsPerSecond, b.requestsPerSecond),
    liveBytes: sum(a.liveBytes, b.liveBytes),
    parts: counts(a.parts, b.parts),
    growthBytesPerHour: sum(a.growthBytesPerHour, b.growthBytesPerHour),
    limitBytes: sum(a.limitBytes, b.limitBytes),
    msToLimit:
      a.msToLimit === null || b.msToLimit === null
        ? (a.msToLimit ?? b.msToLimit)
        : Math.min(a.msToLimit, b.msToLimit),
    verdicts: counts(a.verdicts, b.verdicts),
  };
}
