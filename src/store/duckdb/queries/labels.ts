/** The labels of series, and SQL that selects by them. */
import type { DuckDBValue } from "@duckdb/node-api";
import {
  type FigureSeries,
  type FigureSeriesQuery,
  type LabelMatcher,
  type LabelQuery,
  STREAM_LABEL,
} from "../../interface/labels.js";
import type { RowReader } from "../row_database.js";
import { FOREVER, firstValidMs, type OfSeries, stepsSql, windowValues } from "./gauge.js";
import { PatternBudget } from "./patterns.js";
import { byGroup, stepsOf, stepValues } from "./series.js";

/** Columns of a series that are labels, by the name that answers have. */
const COLUMNS = new Map(
  Object.entries({
    service_name: "s.service",
    version: "s.version",
    env: "s.env",
    host: "s.host",
    namespace: "s.namespace",
    workload: "s.workload",
    pod: "s.pod",
    container: "s.container",
    pid: "CASE WHEN s.pid > 0 THEN CAST(s.pid AS VARCHAR) ELSE '' END",
  }),
);
/** Other names that selectors may use. */
const SELECTABLE = new Map([...COLUMNS, [STREAM_LABEL, "s.stream"]]);
/** Alternative names of labels in a selector. */
const ALIASES = new Map(
  Object.entries({
    service: "service_name",
    "service.name": "service_name",
    "service.version": "version",
    service_version: "version",
    "deployment.environment": "env",
    "k8s.namespace.name": "namespace",
    "k8s.pod.name": "pod",
    "k8s.container.name": "container",
    "host.name": "host",
    hostname: "host",
  }),
);
/** Free labels about how the program was started. */
const HIDDEN = ["command", "python"];

/** The value of a label of the series `s`. `key`: the name of a parameter. */
function valueSql(name: string, key: string): OfSeries {
  const column = SELECTABLE.get(ALIASES.get(name) ?? name);
  return column !== undefined
    ? { sql: column, values: {} }
    : {
        sql: `coalesce(list_extract(s.label_vals, list_position(s.label_keys, $${key})), '')`,
        values: { [key]: name },
      };
}

/** A condition on the series `s`. Throws TidemarkError for a regular expression that is invalid, or takes too long. */
export async function matchersSql(
  database: RowReader,
  matchers: readonly LabelMatcher[],
): Promise<OfSeries> {
  const parts: string[] = [];
  const values: Record<string, DuckDBValue> = {};
  const budget = new PatternBudget();
  for (const [at, { name, operator, value }] of matchers.entries()) {
    const label = valueSql(name, `name${at}`);
    const isPattern = operator.endsWith("~");
    const all = { sql: `SELECT DISTINCT ${label.sql} AS v FROM series s`, values: label.values };
    Object.assign(values, label.values, {
      [`value${at}`]: isPattern ? await budget.matching(database, value, all) : value,
    });
    const test = isPattern
      ? `${label.sql} IN (SELECT unnest(from_json($value${at}, '["VARCHAR"]')))`
      : `${label.sql} = $value${at}`;
    parts.push(operator.startsWith("!") ? `NOT (${test})` : test);
  }
  return { sql: parts.length === 0 ? "true" : parts.join(" AND "), values };
}

/** The series of a query, for a FROM clause: columns of `series` as `s`. */
async function chosen(database: RowReader, query: LabelQuery): Promise<OfSeries> {
  const condition = await matchersSql(database, query.matchers);
  const fromMs = await firstValidMs(database, query, condition);
  const profiles = database.union("profiles", database.daysIn(fromMs, query.endMs), {
    ...{ fromMs, validFromMs: query.startMs, beforeMs: Math.round(query.endMs), of: condition.sql },
  });
  return {
    sql: `(SELECT s.* FROM series s JOIN (
        SELECT series_id, max(ts_ms) AS last_ms FROM ${profiles}
        WHERE (ts_ms >= $start_ms OR ts_ms + carry_ms > $start_ms) AND ts_ms < $end_ms GROUP BY series_id
      ) p USING (series_id)
      WHERE (${condition.sql}) AND (p.last_ms >= $start_ms OR s.ended_ms = 0 OR s.ended_ms > $start_ms)) s`,
    values: { ...condition.values, ...windowValues(query) },
  };
}

export async function labelNames(database: RowReader, query: LabelQuery): Promise<string[]> {
  const { sql, values } = await chosen(database, query);
  const used = [...COLUMNS].map(([name, column]) => `bool_or(${column} <> '') AS "${name}"`);
  const [row] = await database.query(`SELECT ${used.join(", ")} FROM ${sql}`, values);
  const free = await database.query(
    `SELECT DISTINCT unnest(s.label_keys) AS name FROM ${sql}`,
    values,
  );
  return [
    ...[...COLUMNS.keys()].filter((name) => row?.[name] === true),
    ...free.map(({ name }) => String(name)).filter((name) => !HIDDEN.includes(name)),
  ].sort();
}

export async function labelValues(
  database: RowReader,
  name: string,
  query: LabelQuery,
): Promise<string[]> {
  const { sql, values } = await chosen(database, query);
  const label = valueSql(name, "asked");
  // There may be 100,000: one text takes half the time of as many values.
  const [row] = await database.query(
    `SELECT CAST(to_json(list(value ORDER BY value)) AS VARCHAR) AS all_values
      FROM (SELECT DISTINCT ${label.sql} AS value FROM ${sql} WHERE value <> '')`,
    { ...values, ...label.values },
  );
  return JSON.parse(String(row?.all_values ?? "[]")) as string[];
}

/** Combinations of values of these labels. */
export async function labelSets(
  database: RowReader,
  names: readonly string[],
  query: LabelQuery,
): Promise<string[][]> {
  const { sql, values } = await chosen(database, query);
  const labels = names.map((name, at) => valueSql(name, `asked${at}`));
  const rows = await database.query(
    `SELECT DISTINCT [${labels.map((label) => label.sql).join(", ")}]::VARCHAR[] AS vals
      FROM ${sql} ORDER BY vals`,
    Object.assign({ ...values }, ...labels.map((label) => label.values)),
  );
  return rows.map(({ vals }) => (vals as unknown as { items: string[] }).items.map(String));
}

/** Sums over series. A gauge is the mean over each step; allocated bytes are the sum of the profiles in it. */
export async function figureSeries(
  database: RowReader,
  query: FigureSeriesQuery,
): Promise<FigureSeries[]> {
  const condition = await matchersSql(database, query.matchers);
  const isGauge = query.figure.startsWith("live");
  const fromMs = isGauge
    ? await firstValidMs(database, query, condition)
    : Math.round(query.startMs);
  const days = database.daysIn(fromMs, query.endMs);
  const labels = query.groupBy.map((name, at) => valueSql(name, `asked${at}`));
  const steps = stepsOf(query, query.stepMs);
  const sql = (isGauge ? GAUGE_SQL : SUM_SQL)({
    profiles: database.union("profiles", days, {
      ...{ fromMs, beforeMs: query.endMs, of: condition.sql },
    }),
    samples: database.union("samples", days, { beforeMs: query.endMs, of: condition.sql }),
    group: `to_json([${labels.map((label) => label.sql).join(", ")}]::VARCHAR[])`,
    where: condition.sql,
    ofSamples: query.figure.endsWith("Objects"),
  });
  const rows = await database.query(sql, {
    ...windowValues(query),
    ...(isGauge ? { first_ms: BigInt(fromMs) } : {}),
    ...stepValues(query.stepMs, steps),
    ...condition.values,
    ...Object.assign({}, ...labels.map((label) => label.values)),
  });
  return [...byGroup(rows, steps)].map(([group, values]) => ({
    group: JSON.parse(group) as string[],
    values,
  }));
}

interface FigureParts {
  readonly profiles: string;
  readonly samples: string;
  readonly group: string;
  readonly where: string;
  /** Objects are counted in samples only. */
  readonly ofSamples: boolean;
}

const GAUGE_SQL = ({ profiles, samples, group, where, ofSamples }: FigureParts) => {
  const held = `
    SELECT p.series_id, '' AS part, p.samples_id, p.ts_ms, p.live_bytes AS value,
      least(
        coalesce(lead(p.ts_ms) OVER (PARTITION BY p.series_id ORDER BY p.ts_ms), ${FOREVER}),
        p.ts_ms + p.carry_ms,
        CASE WHEN s.ended_ms > 0 THEN s.ended_ms ELSE ${FOREVER} END
      ) AS until_ms
    FROM ${profiles} p JOIN series s USING (series_id)
    WHERE (${where}) AND p.ts_ms >= $first_ms AND p.ts_ms < $end_ms`;
  const readings = ofSamples
    ? `SELECT held.* REPLACE (coalesce(x.objects, 0) AS value) FROM (${held}) held LEFT JOIN (
         SELECT profile_id, sum(live_objects) AS objects FROM ${samples} GROUP BY profile_id
       ) x ON x.profile_id = held.samples_id`
    : held;
  return stepsSql(readings, { group, over: "step" });
};

const SUM_SQL = ({ profiles, samples, group, where, ofSamples }: FigureParts) => `
  SELECT ${group} AS grp, (p.ts_ms - $start_ms) // $step_ms AS step,
    sum(${ofSamples ? "coalesce(x.objects, 0)" : "p.allocated_bytes"}) AS value
  FROM ${profiles} p JOIN series s USING (series_id)
    ${
      ofSamples
        ? `LEFT JOIN (SELECT profile_id, sum(allocated_objects) AS objects FROM ${samples} GROUP BY profile_id) x
           ON x.profile_id = p.profile_id`
        : ""
    }
  WHERE (${where}) AND p.ts_ms >= $start_ms AND p.ts_ms < $end_ms AND $steps > 0
  GROUP BY grp, step ORDER BY grp, step`;
