import type { SeriesAnswer, SeriesGroup } from "../../../model/wire/services.js";
import type { SeriesQuery } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import type { Need, RowReader, Rows } from "../row_database.js";
import { SOURCE_LABEL } from "../series_rows.js";
import {
  metricNames,
  readingsSql,
  selectionSql,
  selectionValues,
  stepsSql,
  windowValues,
  within,
} from "./gauge.js";
import type { Selected } from "./window_sums.js";

const MS_PER_DAY = 86_400_000;

const GROUP_COLUMNS: Readonly<Record<SeriesGroup, string>> = {
  none: "''",
  version: "s.version",
  instance: "s.stream",
  part: "m.name",
};

/** A gauge over time. */
export async function seriesAnswer(database: RowReader, query: SeriesQuery): Promise<SeriesAnswer> {
  const steps = stepsOf(query, query.stepMs);
  const readings = readingsSql(query.name, {
    metrics:
      query.name === "liveBytes"
        ? liveBytesIn(database, query)
        : metricsIn(database, query, needOf(query)),
    group: GROUP_COLUMNS[query.by],
    where: selectionSql(query),
  });
  const rows = await database.query(stepsSql(readings), {
    ...windowValues(query),
    ...selectionValues(query),
    ...stepValues(query.stepMs, steps),
  });
  const groups = [...byGroup(rows, steps)].map(([group, values]) => ({
    group: query.by === "part" ? group.replace(/^ledger\./, "") : group,
    values,
  }));
  const { service, name, startMs, stepMs } = query;
  return { service, name, startMs, stepMs, groups };
}

/** Mean over the window of the number of instances that reported RSS. */
export async function runningInstances(
  database: RowReader,
  window: Window,
  { sql, values }: Selected["condition"],
): Promise<number> {
  const need = { names: metricNames("rssBytes"), of: sql };
  const metrics = metricsIn(database, window, need);
  const readings = readingsSql("rssBytes", { metrics, group: "''", where: sql });
  const [row] = await database.query(
    stepsSql(`SELECT * REPLACE (CAST(1 AS DOUBLE) AS value) FROM (${readings})`),
    {
      ...windowValues(window),
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

/** A reading before the window may be valid within it. */
export function metricsIn(
  database: RowReader,
  { startMs, endMs }: Window,
  need: Pick<Need, "names" | "of">,
): string {
  return database.union("metrics", database.daysIn(startMs - MS_PER_DAY, endMs), {
    ...need,
    ...within({ startMs: startMs - MS_PER_DAY, endMs }),
  });
}

function needOf(query: SeriesQuery): Required<Pick<Need, "names" | "of">> {
  return { names: metricNames(query.name), of: selectionSql(query) };
}

/** The same, with the profiles of other profilers, which send no metrics. */
function liveBytesIn(database: RowReader, query: SeriesQuery): string {
  const need = needOf(query);
  const profiles = database.union(
    "profiles",
    database.daysIn(query.startMs - MS_PER_DAY, query.endMs),
    { fromMs: query.startMs - MS_PER_DAY, beforeMs: query.endMs, of: need.of },
  );
  return `(SELECT series_id, ts_ms, name, value, carry_ms FROM ${metricsIn(database, query, need)}
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
