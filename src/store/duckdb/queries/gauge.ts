/** SQL for gauges: a reading is valid until the next one; readings are averaged over time, then summed over series. */
import type { DuckDBValue } from "@duckdb/node-api";
import type { Millis, TimeMs } from "../../../model/base/units.js";
import type { SeriesName } from "../../../model/wire/services.js";
import type { Selection } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import type { RowReader } from "../row_database.js";
import { CARRY_SHARE, SHORTEST_CARRY_MS } from "../sample_rows.js";
import { UNREAD_PEAK } from "../unread_peaks.js";

/** A process is polled at least every 2 minutes; an older reading is not carried forward. */
export const CARRY_MS = 300_000;

/** Figures that are read at growing intervals are valid for longer: 12 % of the run's length, and a little more. */
const RARE_CARRY = `greatest(${SHORTEST_CARRY_MS}, (m.ts_ms - s.recorded_ms) * ${CARRY_SHARE})`;

/** The longest bucket of a coarser tier, whose row is as old as its first reading. */
const LONGEST_BUCKET_MS: Millis = 86_400_000;

/** A time after every other one. */
export const FOREVER = "9007199254740991";

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
  requestsPerSecond: { names: ["requestsPerSecond"], ofRoot: false, carry: String(CARRY_MS) },
  cgroupUsageBytes: { names: ["cgroupUsageBytes"], ofRoot: true, carry: RARE_CARRY },
  cgroupLimitBytes: { names: ["cgroupLimitBytes"], ofRoot: true, carry: RARE_CARRY },
  cgroupHighBytes: { names: ["cgroupHighBytes"], ofRoot: true, carry: RARE_CARRY },
};

const OFTEN = Object.values(SOURCES)
  .flatMap(({ names, carry }) => (carry === RARE_CARRY ? [] : names.map((name) => `'${name}'`)))
  .join(", ");

/** How long a raw reading of any metric is valid, of the readings `m` and their series `s`. */
export function carrySql(name: string): string {
  return `CASE WHEN ${name} = '${UNREAD_PEAK}' THEN 1 WHEN ${name} IN (${OFTEN}) THEN ${CARRY_MS} ELSE ${RARE_CARRY} END`;
}

/**
 * Readings that are valid within the window, each with the time until which it is valid. `metrics`: a table of the
 * FROM clause, whose rows of coarser tiers say how long they are valid, from `$first_ms` on; `where`: further conditions
 * on `s`, the series. Columns: those of {@link stepsSql}; `part` is the metric's name if there are several.
 */
export function readingsSql(
  name: SeriesName,
  { metrics, where }: { metrics: string; where: string },
): string {
  const { names, ofRoot, carry } = SOURCES[name];
  const condition = names.map((each) => `m.name LIKE '${each}'`).join(" OR ");
  const isOne = names.length === 1 && !names[0]?.endsWith("%");
  return `SELECT m.series_id, ${isOne ? "''" : "m.name"} AS part, m.ts_ms, m.value,
      least(
        coalesce(lead(m.ts_ms) OVER (PARTITION BY m.series_id${isOne ? "" : ", m.name"} ORDER BY m.ts_ms), ${FOREVER}),
        m.ts_ms + CASE WHEN m.carry_ms > 0 THEN m.carry_ms ELSE CAST(${carry} AS BIGINT) END,
        CASE WHEN s.ended_ms > 0 THEN s.ended_ms ELSE ${FOREVER} END
      ) AS until_ms
    FROM ${metrics} m JOIN series s USING (series_id)
    WHERE (${condition}) ${ofRoot ? "AND s.series_id = s.root_id" : ""} AND (${where})
      AND m.ts_ms >= $first_ms AND m.ts_ms < $end_ms`;
}

interface StepsShape {
  /** An expression of the series `s` and of `m.part`. */
  readonly group: string;
  /** The time that a step's mean is over: the whole step, or the part of it in which any series of the group has a reading. */
  readonly over: "step" | "reported";
}

/**
 * The sum over series of each step's mean; the last step ends with the window. `readings`: a query with the columns
 * series_id, part, ts_ms, until_ms, value. Columns: grp, step (from 0), value.
 *
 * Most readings are valid within one step. The others are cut at the limits of steps; to cut all takes twice as long. Groups
 * are joined to the sums of series, not to their readings. A mean over the reported part has the column ms: how long that is.
 */
export function stepsSql(readings: string, { group, over }: StepsShape): string {
  const [from, to] = ["$start_ms + step * $step_ms", "$start_ms + (step + 1) * $step_ms"];
  const lengthMs = `(least($end_ms, ${to}) - (${from}))`;
  const cut = (pieces: string) => `
    SELECT series_id, part, value, first AS step, from_ms, to_ms FROM ${pieces} WHERE first = last
    UNION ALL
    SELECT series_id, part, value, step, greatest(from_ms, ${from}) AS from_ms, least(to_ms, ${to}) AS to_ms
    FROM (SELECT *, unnest(range(first, last + 1)) AS step FROM ${pieces} WHERE first < last)`;
  const steps = `WITH pieces AS MATERIALIZED (
      SELECT series_id, part, value, from_ms, to_ms, (from_ms - $start_ms) // $step_ms AS first,
        (to_ms - 1 - $start_ms) // $step_ms AS last
      FROM (
        SELECT series_id, part, value, greatest(ts_ms, $start_ms) AS from_ms,
          least(until_ms, $end_ms, $start_ms + $steps * $step_ms) AS to_ms
        FROM (${readings}))
      WHERE to_ms > from_ms)`;
  if (over === "step") {
    return `${steps},
      areas AS (
        SELECT series_id, part, step, sum(value * (to_ms - from_ms)) AS area
        FROM (${cut("pieces")}) GROUP BY series_id, part, step)
      SELECT ${group} AS grp, step, sum(m.area) / ${lengthMs} AS value
      FROM areas m JOIN series s USING (series_id) GROUP BY grp, step ORDER BY grp, step`;
  }
  return `${steps},
    areas AS (
      SELECT series_id, part, step, sum(value * (to_ms - from_ms)) AS area, sum(to_ms - from_ms) AS ms,
        min(from_ms) AS from_ms, max(to_ms) AS to_ms
      FROM (${cut("pieces")}) GROUP BY series_id, part, step),
    grouped AS MATERIALIZED (
      SELECT ${group} AS grp, m.* FROM areas m JOIN series s USING (series_id)),
    sums AS (
      SELECT grp, step, sum(area) AS area, max(ms) AS longest_ms FROM grouped GROUP BY grp, step),
    ${COVERED_SQL(lengthMs, cut)}
    SELECT sums.grp, sums.step, coalesce(covered.ms, longest_ms) AS ms, area / coalesce(covered.ms, longest_ms) AS value
    FROM sums LEFT JOIN covered ON covered.grp = sums.grp AND covered.step = sums.step ORDER BY 1, 2`;
}

/**
 * The time in which any series of a group has a reading, in steps that no single series covers:
 *
 *     series 1  ├──────┤     ├──┤
 *     series 2     ├──────┤
 *     covered   ├─────────┤  ├──┤
 *
 * A series whose readings have a gap in the step counts by its pieces.
 */
const COVERED_SQL = (lengthMs: string, cut: (pieces: string) => string) => `
    partial AS MATERIALIZED (
      SELECT g.* FROM grouped g JOIN sums ON sums.grp = g.grp AND sums.step = g.step
      WHERE sums.longest_ms < ${lengthMs.replaceAll("step *", "g.step *").replaceAll("(step +", "(g.step +")}),
    gapped AS MATERIALIZED (SELECT grp, series_id, part, step FROM partial WHERE ms < to_ms - from_ms),
    gapped_pieces AS MATERIALIZED (
      SELECT * FROM pieces WHERE (series_id, part) IN (SELECT (series_id, part) FROM gapped)),
    spans AS (
      SELECT grp, step, from_ms, to_ms FROM partial WHERE ms >= to_ms - from_ms
      UNION ALL
      SELECT g.grp, g.step, p.from_ms, p.to_ms
      FROM (${cut("gapped_pieces")}) p JOIN gapped g USING (series_id, part, step)),
    covered AS (
      SELECT grp, step, sum(greatest(0, to_ms - greatest(from_ms, coalesce(before_ms, from_ms)))) AS ms
      FROM (
        SELECT *, max(to_ms) OVER (PARTITION BY grp, step ORDER BY from_ms, to_ms
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ms
        FROM spans)
      GROUP BY grp, step)`;

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
