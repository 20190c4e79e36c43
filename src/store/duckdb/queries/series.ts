import type { TimeMs } from "../../../model/base/units.js";
import type { SeriesAnswer, SeriesGroup } from "../../../model/wire/services.js";
import type { SeriesQuery } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import type { Need, RowReader, Rows } from "../row_database.js";
import { SOURCE_LABEL } from "../series_rows.js";
import {
  firstValidMs,
  firstValidOftenMs,
  isOften,
  metricNames,
  type OfSeries,
  readingsSql,
  selectionSql,
  selectionValues,
  stepsSql,
  windowValues,
} from "./gauge.js";
import type { Selected } from "./window_sums.js";

const GROUP_COLUMNS: Readonly<Record<SeriesGroup, string>> = {
  none: "''",
  version: "s.version",
  instance: "s.stream",
  part: "m.part",
};

/** A gauge over time. The mean of a step is over the part of it in which the group reported. */
export async function seriesAnswer(database: RowReader, query: SeriesQuery): Promise<SeriesAnswer> {
  const steps = stepsOf(query, query.stepMs);
  const of = ofSeries(query);
  const reach = {
    firstMs: isOften(query.name)
      ? firstValidOftenMs(query)
      : await firstValidMs(database, query, of),
    endMs: query.endMs,
  };
  const need = { names: metricNames(query.name), of: of.sql };
  const metrics = metricsIn(database, reach, need);
  const readings = readingsSql(query.name, {
    metrics: query.name === "liveBytes" ? withReceived(database, reach, need.of, metrics) : metrics,
    where: of.sql,
  });
  const sql = stepsSql(readings, { group: GROUP_COLUMNS[query.by], over: "reported" });
  const rows = await database.query(sql, {
    ...windowValues(query),
    first_ms: BigInt(reach.firstMs),
    ...of.values,
    ...stepValues(query.stepMs, steps),
  });
  const groups = [...byGroup(rows, steps)].map(([group, values]) => ({
    group: query.by === "part" ? partOf(group) : group,
    values,
  }));
  const { service, name, startMs, stepMs } = query;
  return { service, name, startMs, stepMs, groups };
}

/** As in the ledger: "heap" of "ledger.heap"; of the kinds of pages, "anonymous". */
function partOf(metric: string): string {
  const kinds: Readonly<Record<string, string>> = {
    anonRssBytes: "anonymous",
    fileRssBytes: "files",
    shmemRssBytes: "shared",
  };
  return kinds[metric] ?? metric.replace(/^ledger\./, "");
}

function ofSeries(query: SeriesQuery): OfSeries {
  const sql = selectionSql(query);
  const values = selectionValues(query);
  return query.streams === undefined
    ? { sql, values }
    : {
        sql: `${sql} AND s.stream IN (SELECT unnest(from_json($streams, '["VARCHAR"]')))`,
        values: { ...values, streams: JSON.stringify(query.streams) },
      };
}

/** Mean over the window of the number of instances that reported RSS. */
export async function runningInstances(
  database: RowReader,
  window: Window,
  { sql, values }: Selected["condition"],
): Promise<number> {
  const need = { names: metricNames("rssBytes"), of: sql };
  const reach = { firstMs: firstValidOftenMs(window), endMs: window.endMs };
  const metrics = metricsIn(database, reach, need);
  const readings = readingsSql("rssBytes", { metrics, where: sql });
  const [row] = await database.query(
    stepsSql(`SELECT * REPLACE (CAST(1 AS DOUBLE) AS value) FROM (${readings})`, {
      group: "''",
      over: "step",
    }),
    {
      ...windowValues(window),
      first_ms: BigInt(reach.firstMs),
      ...values,
      ...stepValues(window.endMs - window.startMs, 1),
    },
  );
  return Number(row?.value ?? 0);
}

export function stepsOf({ startMs, endMs }: Window, stepMs: number): number {
  return Math.max(1, Math.ceil((endMs - startMs) / stepMs));
}

export function stepValues(stepMs: number, steps: number) {
  return { step_ms: BigInt(Math.round(stepMs)), steps: BigInt(steps) };
}

/** The time of the rows that a window's figures are made of: the first ones may be older than the window. */
export interface Reach {
  readonly firstMs: TimeMs;
  readonly endMs: TimeMs;
}

export function metricsIn(
  database: RowReader,
  { firstMs, endMs }: Reach,
  need: Pick<Need, "names" | "of">,
): string {
  return database.union("metrics", database.daysIn(firstMs, endMs), {
    ...need,
    ...{ fromMs: firstMs, beforeMs: Math.round(endMs) },
  });
}

/** Live bytes with the profiles of other profilers, which send no metrics. */
function withReceived(
  database: RowReader,
  { firstMs, endMs }: Reach,
  of: string,
  metrics: string,
): string {
  const profiles = database.union("profiles", database.daysIn(firstMs, endMs), {
    ...{ fromMs: firstMs, beforeMs: Math.round(endMs), of },
  });
  return `(SELECT series_id, ts_ms, name, value, carry_ms FROM ${metrics}
    UNION ALL
    SELECT p.series_id, p.ts_ms, 'liveBytes', p.live_bytes, p.carry_ms
    FROM ${profiles} p JOIN series r ON r.series_id = p.series_id
    WHERE list_contains(r.label_keys, '${SOURCE_LABEL}'))`;
}

/** By group, a value for each step; null if no process reported. */
export function byGroup(rows: Rows, steps: number): Map<string, (number | null)[]> {
  const groups = new Map<string, (number | null)[]>();
  for (const { grp, step, value } of rows) {
    let values = groups.get(String(grp));
    if (values === undefined) {
      values = new Array<number | null>(steps).fill(null);
      groups.set(String(grp), values);
    }
    values[Number(step)] = Number(value);
  }
  return groups;
}
