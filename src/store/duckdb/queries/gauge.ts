/** SQL for gauges: a reading is valid until the next one; readings are averaged over time, then summed over series. */
import type { DuckDBValue } from "@duckdb/node-api";
import type { Millis, TimeMs } from "../../../model/base/units.js";
import type { SeriesName } from "../../../model/wire/services.js";
import type { Selection } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import type { RowReader } from "../row_database.js";
import { CARRY_SHARE, SHORTEST_CARRY_MS } from "../sample_rows.js";

/** A process is polled at least every 2 minutes; an older reading is not carried forward. */
export const CARRY_MS = 300_000;

/** Figures that are read at growing intervals are valid for longer: 12 % of the run's length, and a little more. */
const RARE_CARRY = `greatest(${SHORTEST_CARRY_MS}, (m.ts_ms - s.recorded_ms) * ${CARRY_SHARE})`;

/** The longest bucket of a coarser tier, whose row is as old as its first reading. */
const LONGEST_BUCKET_MS: Millis = 86_400_000;

/** A condition on the series `s`, with its parameters. */
export interface OfSeries {
  readonly sql: string;
  readonly values: Record<string, DuckDBValue>;
}

/** How long profiles and rare figures of these series are valid at most, if they are valid at a time. */
export async function longestCarryMs(
  database: RowReader,
  atMs: TimeMs,
  { sql, values }: OfSeries,
): Promise<Millis> {
  const [row] = await database.query(
    `SELECT min(s.recorded_ms) AS first_ms FROM series s
      WHERE s.root_id <> 0 AND (s.ended_ms = 0 OR s.ended_ms > $at_ms) AND (${sql})`,
    { ...values, at_ms: BigInt(Math.round(atMs)) },
  );
  const runMs = row?.first_ms == null ? 0 : atMs - Number(row.first_ms);
  return Math.max(SHORTEST_CARRY_MS, Math.ceil(CARRY_SHARE * runMs));
}

/** No row that is older is valid in the window. */
export async function firstValidMs(
  database: RowReader,
  { startMs }: Window,
  of: OfSeries,
): Promise<TimeMs> {
  return Math.round(startMs) - LONGEST_BUCKET_MS - (await longestCarryMs(database, startMs, of));
}

/** The same for RSS and other figures that are read often. */
export function firstValidOftenMs({ startMs }: Window): TimeMs {
  return Math.round(startMs) - LONGEST_BUCKET_MS - SHORTEST_CARRY_MS;
}

/** Names of the metrics, and whether they cover only the recorded program's first process. */
const SOURCES: Readonly<
  Record<SeriesName, { readonly names: string[]; readonly ofRoot: boolean; readonly carry: string }>
> = {
  rssBytes: { names: ["treeRssBytes"], ofRoot: true, carry: String(CARRY_MS) },
  pssBytes: { names: ["treePssBytes"], ofRoot: true, carry: RARE_CARRY },
  liveBytes: { names: ["liveBytes"], ofRoot: false, carry: String(CARRY_MS) },
  ledger: { names: ["ledger.%"], ofRoot: false, carry: RARE_CARRY },
  pages: {
    names: ["anonRssBytes", "fileRssBytes", "shmemRssBytes"],
    ...{ ofRoot: false, carry: String(CARRY_MS) },
  },
  deviceBytes: { names: ["deviceBytes"], ofRoot: false, carry: String(CARRY_MS) },
};

const OFTEN = Object.values(SOURCES)
  .flatMap(({ names, carry }) => (carry === RARE_CARRY ? [] : names.map((name) => `'${name}'`)))
  .join(", ");

/** How long a raw reading of any metric is valid, of the readings `m` and their series `s`. */
export function carrySql(name: string): string {
  return `CASE WHEN ${name} IN (${OFTEN}) THEN ${CARRY_MS} ELSE ${RARE_CARRY} END`;
}

/**
 * Readings that are valid within the window, each with the time until which it is valid. `metrics`: a table of the
 * FROM clause, whose rows of coarser tiers say how long they are valid, from `$first_ms` on; `where`: further conditions on `s`, the series. Columns: grp, series_id, ts_ms, until_ms, value.
 */
export function readingsSql(
  name: SeriesName,
  { metrics, group, where }: { metrics: string; group: string; where: string },
): string {
  const { names, ofRoot, carry } = SOURCES[name];
  const condition = names.map((each) => `m.name LIKE '${each}'`).join(" OR ");
  return `SELECT ${group} AS grp, m.series_id, m.ts_ms, m.value,
      least(
        coalesce(lead(m.ts_ms) OVER (PARTITION BY m.series_id, m.name ORDER BY m.ts_ms), 9007199254740991),
        m.ts_ms + CASE WHEN m.carry_ms > 0 THEN m.carry_ms ELSE CAST(${carry} AS BIGINT) END,
        CASE WHEN s.ended_ms > 0 THEN s.ended_ms ELSE 9007199254740991 END
      ) AS until_ms
    FROM ${metrics} m JOIN series s USING (series_id)
    WHERE (${condition}) ${ofRoot ? "AND s.series_id = s.root_id" : ""} AND (${where})
      AND m.ts_ms >= $first_ms AND m.ts_ms < $end_ms`;
}

/** Of a piece: the part of its time that lies in its step, and its value times that. */
const FROM = "greatest(ts_ms, $start_ms + step * $step_ms)";
const TO = "least(until_ms, $start_ms + (step + 1) * $step_ms)";
const AREA = `value * (${TO} - ${FROM})`;

/** The sum over series of each step's mean; the last step ends with the window. Columns: grp, step (from 0), value. */
export function stepsSql(readings: string): string {
  return `${piecesSql(readings)}
    SELECT grp, step, sum(${AREA}) / (least($end_ms, $start_ms + (step + 1) * $step_ms) - $start_ms - step * $step_ms) AS value
    FROM pieces GROUP BY grp, step ORDER BY grp, step`;
}

/** The same, but each mean is over the time of the step in which the group has readings, not over the whole step. */
export function reportedStepsSql(readings: string): string {
  return `${piecesSql(readings)}
    SELECT grp, step, sum(area) / max(ms) AS value FROM (
      SELECT grp, step, sum(${AREA}) AS area, sum(${TO} - ${FROM}) AS ms
      FROM pieces GROUP BY grp, series_id, step)
    GROUP BY grp, step ORDER BY grp, step`;
}

function piecesSql(readings: string): string {
  return `WITH readings AS (${readings}),
    pieces AS (
      SELECT grp, series_id, ts_ms, until_ms, value,
        unnest(range(
          CAST(greatest(0, (ts_ms - $start_ms) // $step_ms) AS BIGINT),
          CAST(least($steps - 1, (until_ms - 1 - $start_ms) // $step_ms) AS BIGINT) + 1
        )) AS step
      FROM (SELECT * REPLACE (least(until_ms, $end_ms) AS until_ms) FROM readings)
      WHERE until_ms > $start_ms AND until_ms > ts_ms)`;
}

export function selectionSql({ version, stream }: Selection): string {
  return [
    "s.service = $service",
    ...(version === undefined ? [] : ["s.version = $version"]),
    ...(stream === undefined ? [] : ["s.stream = $stream"]),
  ].join(" AND ");
}

export function selectionValues({
  service,
  version,
  stream,
}: Selection): Record<string, DuckDBValue> {
  return {
    service,
    ...(version === undefined ? {} : { version }),
    ...(stream === undefined ? {} : { stream }),
  };
}

/** The names of its metrics. */
export function metricNames(name: SeriesName): string[] {
  return SOURCES[name].names;
}

/** Whether it is read often. */
export function isOften(name: SeriesName): boolean {
  return SOURCES[name].carry !== RARE_CARRY;
}

/** Rows of a window. */
export function within({ startMs, endMs }: Window): { fromMs: TimeMs; beforeMs: TimeMs } {
  return { fromMs: Math.round(startMs), beforeMs: Math.round(endMs) };
}

export function windowValues({ startMs, endMs }: Window): Record<string, DuckDBValue> {
  return { start_ms: BigInt(Math.round(startMs)), end_ms: BigInt(Math.round(endMs)) };
}
