/** Profiles of a window summed by stack. */
import type { DuckDBValue } from "@duckdb/node-api";
import type { Window } from "../../interface/window.js";
import { type SpanSums, SUMMED } from "../kept/kept_sums.js";
import type { RowReader, SampleWeights } from "../row_database.js";
import { LONGEST_UNSTORED_MS } from "../sample_rows.js";
import { firstValidMs, type OfSeries } from "./gauge.js";
import { type Part, spansOf, withData } from "./spans.js";

export interface Selected {
  readonly condition: OfSeries;
  /** Classes of age that count. */
  readonly ages: SampleWeights["ages"];
  /** A condition on the labels `l` of samples. */
  readonly ofLabels: { readonly sql: string; readonly values: Record<string, DuckDBValue> };
  /** The label whose values are distinguished, as SQL; `''` for none. */
  readonly labelSql: string;
  /** If all are of one. */
  readonly service: string | null;
}

/** The sums of spans that make up the window, without those in which the store has no data. Their rows of stacks are those
 * of `database.sums`, within a call of its `use`. */
export async function windowSums(
  database: RowReader,
  window: Window,
  selected: Selected,
): Promise<SpanSums[]> {
  const { condition, ages, ofLabels, labelSql, service } = selected;
  const key = { text: JSON.stringify([condition, ages, ofLabels, labelSql]), service };
  return spansOf(await withData(database, window, condition), database.sums, key, (part) =>
    summed(database, part, selected),
  );
}

/** Each profile counts for the time in which it was the newest of its process, cut at the limits of steps; its allocated
 * bytes count in the step that it is in. */
const piecesSql = (profiles: string, condition: string) => `
  WITH chosen AS (SELECT s.series_id, s.root_id, s.ended_ms FROM series s WHERE ${condition}),
    held AS (
      SELECT p.profile_id, p.samples_id, p.series_id, p.ts_ms, chosen.root_id,
        least(
          coalesce(lead(p.ts_ms) OVER (PARTITION BY p.series_id ORDER BY p.ts_ms), 9007199254740991),
          p.ts_ms + p.carry_ms,
          CASE WHEN chosen.ended_ms > 0 THEN chosen.ended_ms ELSE 9007199254740991 END,
          $end_ms
        ) AS until_ms
      FROM ${profiles} p JOIN chosen USING (series_id)
      WHERE p.ts_ms >= $from_ms AND p.ts_ms < $end_ms),
    steps AS (
      SELECT *, unnest(range(
          CAST(greatest(0, (ts_ms - $start_ms) // $step_ms) AS BIGINT),
          CAST((until_ms - 1 - $start_ms) // $step_ms AS BIGINT) + 1
        )) AS step
      FROM held WHERE until_ms > ts_ms AND until_ms > $start_ms),
    pieces AS (
      SELECT step, samples_id, series_id, root_id, ts_ms, greatest(ts_ms, $start_ms + step * $step_ms) AS from_ms,
        least(until_ms, $start_ms + (step + 1) * $step_ms) AS to_ms
      FROM steps)`;

/** `first_ms`: of the profiles that count. A merged profile, of no root, counts for those that it is the sum of. */
const livesSql = (profiles: string, counts: string, condition: string) => `
  ${piecesSql(profiles, condition)}
  SELECT step, v.root_id, min(from_ms) AS from_ms, max(to_ms) AS to_ms, min(v.ts_ms) AS first_ms,
    sum(CASE WHEN v.root_id = 0 THEN (to_ms - from_ms) * coalesce(c.instances, 0) ELSE 0 END) AS merged_ms
  FROM pieces v LEFT JOIN ${counts} c ON v.root_id = 0 AND c.series_id = v.series_id AND c.ts_ms = v.ts_ms
  GROUP BY step, v.root_id`;

const weightsSql = (profiles: string, condition: string) => `
  ${piecesSql(profiles, condition)},
    weighed AS (
      SELECT step, samples_id, sum(ms) AS ms, max(counts) AS counts
      FROM (
        SELECT step, samples_id, to_ms - from_ms AS ms, 0 AS counts FROM pieces
        UNION ALL
        SELECT (ts_ms - $start_ms) // $step_ms, samples_id, 0, 1 FROM held
        WHERE samples_id = profile_id AND ts_ms >= $start_ms)
      GROUP BY step, samples_id)`;

const samplesSql = (
  profiles: string,
  samples: string,
  { condition: { sql: condition }, ages, ofLabels: { sql: ofLabels }, labelSql }: Selected,
) => `
  ${weightsSql(profiles, condition)}
  SELECT w.step, x.stack_id, x.domain, ${labelSql} AS label,
    ${SUMMED.map((name) => `sum(x.${name} * w.${name.startsWith("live") ? "ms" : "counts"}) AS ${name}`).join(", ")}
  FROM ${samples} x JOIN weighed w ON x.profile_id = w.samples_id
    LEFT JOIN labels l USING (label_id)
  WHERE x.ts_ms >= $first_ms AND x.ts_ms < $end_ms AND (${ofLabels})
    AND ${ages === undefined ? "true" : `x.age_bucket BETWEEN ${ages[0]} AND ${ages[1]}`}
  GROUP BY ALL`;

/** The same from sums by label, which another database has made. */
const summedSql = (sums: string, { ofLabels: { sql: ofLabels }, labelSql }: Selected) => `
  SELECT x.step, x.stack_id, x.domain, ${labelSql} AS label,
    ${SUMMED.map((name) => `sum(x.${name}) AS ${name}`).join(", ")}
  FROM ${sums} x LEFT JOIN labels l USING (label_id)
  WHERE (${ofLabels})
  GROUP BY ALL`;

/** One for each step of the part. */
async function summed(
  database: RowReader,
  { startMs, endMs, stepMs }: Part,
  selected: Selected,
): Promise<SpanSums[]> {
  const { condition, ages, ofLabels } = selected;
  const fromMs = await firstValidMs(database, { startMs, endMs }, condition);
  const days = database.daysIn(fromMs, endMs);
  const of = condition.sql;
  const profiles = database.union("profiles", days, { fromMs, beforeMs: endMs, of });
  const values = {
    ...condition.values,
    ...{ start_ms: BigInt(startMs), end_ms: BigInt(endMs), step_ms: BigInt(stepMs) },
    from_ms: BigInt(fromMs),
  };
  const lives = await database.query(
    livesSql(profiles, database.rolledCounts(days), condition.sql),
    values,
  );
  // Samples are at most this much older than the profiles that use them, and of the same day.
  const firstMs =
    lives.reduce((least, { first_ms: ms }) => Math.min(least, Number(ms)), startMs) -
    LONGEST_UNSTORED_MS -
    1;
  const need = { fromMs: firstMs, beforeMs: endMs, of };
  const sampleDays = database.daysIn(firstMs, endMs);
  const sums = database.sampleSums?.(sampleDays, need, {
    sql: `${weightsSql(profiles, condition.sql)} SELECT step, samples_id, ms, counts FROM weighed`,
    ages,
  });
  const columns = await (sums === undefined
    ? database.columns(
        samplesSql(profiles, database.union("samples", sampleDays, need), selected),
        { ...values, ...ofLabels.values, first_ms: BigInt(firstMs) },
      )
    : database.columns(summedSql(sums, selected), { ...values, ...ofLabels.values }));
  const steps = Math.ceil((endMs - startMs) / stepMs);
  return Array.from({ length: steps }, (_, step) => {
    const rows = rowsAt(columns.step, step);
    const own = lives.filter((row) => Number(row.step) === step);
    const spans = own.filter((row) => row.root_id !== 0n);
    return {
      startMs: startMs + step * stepMs,
      endMs: startMs + (step + 1) * stepMs,
      stacks: Uint32Array.from(rows, (row) =>
        database.sums.rowOf(
          columns.stack_id?.[row] as bigint,
          String(columns.domain?.[row]),
          String(columns.label?.[row]),
        ),
      ),
      figures: Object.fromEntries(
        SUMMED.map((name) => [
          name,
          Float64Array.from(rows, (row) => Number(columns[name]?.[row] ?? 0)),
        ]),
      ) as SpanSums["figures"],
      lives: new Map(
        spans.map((row) => [row.root_id as bigint, [Number(row.from_ms), Number(row.to_ms)]]),
      ),
      mergedMs: own.reduce((sum, row) => sum + Number(row.merged_ms), 0),
    };
  });
}

function rowsAt(steps: readonly DuckDBValue[] | undefined, step: number): number[] {
  const rows: number[] = [];
  steps?.forEach((value, row) => {
    if (Number(value) === step) {
      rows.push(row);
    }
  });
  return rows;
}
