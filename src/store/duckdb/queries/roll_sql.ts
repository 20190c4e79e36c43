/**
 * SQL that makes the rows of a coarser tier from those of one day.
 *
 *     profiles  ──► held: until when each is valid ──► pieces: cut at the limits of buckets ──► one row for each bucket
 *
 * A bucket's row holds from the first moment that it covers, for as long as the pieces in it are long together. Its live
 * figures are their means weighted by time, so the integral over the bucket stays the same; allocated figures are sums.
 * A profile that holds for several whole buckets stays one row. Rolling rows of a coarser tier again, alone or with rows
 * that arrived late, gives the same integrals.
 *
 * In the merged tier, a row holds for a whole bucket and is the sum over the series of a group.
 */
import type { Millis } from "../../../model/base/units.js";
import { SOURCE_LABEL } from "../series_rows.js";
import { carrySql, FOREVER } from "./gauge.js";

/** Free labels that merged series keep. */
const KEPT_LABELS = ["track", SOURCE_LABEL];
/** Events that are too many to keep. */
const BRIEF_EVENTS = "('step-begin', 'step-end', 'label', 'period')";

export interface RollParts {
  /** The schemas of the day and of the new file. */
  readonly from: string;
  readonly to: string;
  readonly day: string;
  readonly bucketMs: Millis;
  readonly isMerged: boolean;
  /** Whether the day has the tables of a coarser tier. */
  readonly isRolled: boolean;
  /** For a FROM clause: profiles and metrics of later days. */
  readonly laterProfiles: string;
  readonly laterMetrics: string;
}

/** The statements, in order. Temporary tables are the connection's own. */
export function rollStatements(parts: RollParts): string[] {
  return [
    `CREATE OR REPLACE TEMP TABLE held AS ${heldSql(parts)}`,
    `CREATE OR REPLACE TEMP TABLE pieces AS ${piecesSql("held", parts)}`,
    ...(parts.isMerged ? mergedStatements(parts) : ownStatements(parts)),
    `INSERT INTO ${parts.to}.rolled_metrics ${metricsSql(parts)}`,
    `INSERT INTO ${parts.to}.events SELECT * FROM ${parts.from}.events WHERE kind NOT IN ${BRIEF_EVENTS}`,
    `INSERT INTO ${parts.to}.applied SELECT * FROM ${parts.from}.applied`,
    ...["held", "pieces", "buckets", "grouped"].map((name) => `DROP TABLE IF EXISTS temp.${name}`),
  ];
}

/** `owner`: the series of the new rows, `root`: the program; `weight` is how many programs a row stands for. */
const heldSql = ({ from, day, isMerged, isRolled, laterProfiles, bucketMs }: RollParts) => `
  SELECT h.*, ts_ms // ${bucketMs} * ${bucketMs} AS bucket FROM (
    SELECT * EXCLUDE (carry_ms, ended_ms, is_own), is_own, greatest(ts_ms, least(
        coalesce(lead(ts_ms) OVER (PARTITION BY series_id ORDER BY ts_ms, is_own), ${FOREVER}),
        ts_ms + carry_ms,
        CASE WHEN ended_ms > 0 THEN ended_ms ELSE ${FOREVER} END)) AS until_ms
    FROM (
      SELECT p.series_id, p.ts_ms, p.carry_ms, p.profile_id, p.samples_id, p.kind, p.period_bytes, p.live_bytes,
        p.allocated_bytes, p.duration_ms, s.ended_ms, true AS is_own,
        CASE WHEN s.root_id = 0 THEN s.series_id ELSE s.root_id END AS root,
        ${isRolled ? "CASE WHEN s.root_id = 0 THEN coalesce(c.instances, 0) ELSE 1 END" : "1"} AS weight,
        ${isMerged ? groupSql(day) : "p.series_id"} AS owner
      FROM ${from}.profiles p JOIN series s USING (series_id)
        ${isRolled ? `LEFT JOIN ${from}.rolled_counts c ON c.series_id = p.series_id AND c.ts_ms = p.ts_ms` : ""}
      UNION ALL BY NAME
      SELECT series_id, min(ts_ms) AS ts_ms, 0 AS carry_ms, 0 AS ended_ms, false AS is_own
      FROM ${laterProfiles} GROUP BY series_id)) h
  WHERE is_own`;

/** The id of a merged series. It differs from day to day, so that the rows of one do not end those of another. */
function groupSql(day: string): string {
  return `md5_number_lower(to_json(['rollup', '${day}', s.service, s.version, s.env, ${keptValues()}]::VARCHAR[])::VARCHAR)`;
}

const keptValues = () =>
  KEPT_LABELS.map(
    (name) => `coalesce(list_extract(s.label_vals, list_position(s.label_keys, '${name}')), '')`,
  ).join(", ");

/** Cuts each row's time at the limits of buckets: into all of them, or so that whole buckets stay together. */
function piecesSql(table: string, { bucketMs, isMerged }: RollParts): string {
  const up = `(ts_ms + ${bucketMs - 1}) // ${bucketMs} * ${bucketMs}`;
  const down = `until_ms // ${bucketMs} * ${bucketMs}`;
  const parts = isMerged
    ? `list_transform(range(ts_ms // ${bucketMs}, (until_ms - 1) // ${bucketMs} + 1),
        lambda b: {'a': greatest(ts_ms, b * ${bucketMs}), 'z': least(until_ms, (b + 1) * ${bucketMs})})`
    : `CASE WHEN ${up} > ${down} THEN [{'a': ts_ms, 'z': until_ms}]
        ELSE list_filter([{'a': ts_ms, 'z': ${up}}, {'a': ${up}, 'z': ${down}}, {'a': ${down}, 'z': until_ms}],
          lambda x: x.z > x.a) END`;
  return `SELECT * EXCLUDE (part), part.a AS a, part.z - part.a AS ms, part.a // ${bucketMs} * ${bucketMs} AS piece_bucket
    FROM (SELECT *, unnest(${parts}) AS part FROM ${table} WHERE until_ms > ts_ms)`;
}

/** The days before and after a midnight may each have a row of the bucket after it. */
const bucketId = (day: string) => `md5_number_lower(concat('bucket ${day} ', owner, ' ', bucket))`;

/** The rows of each series stay its own. */
function ownStatements({ from, to, day }: RollParts): string[] {
  return [
    `CREATE OR REPLACE TEMP TABLE buckets AS
      SELECT owner, bucket, ${bucketId(day)} AS profile_id, min(a) AS ts_ms, sum(ms) AS covered, sum(live * ms) AS live,
        sum(allocated) AS allocated, sum(duration) AS duration, max(period) AS period, any_value(kind) AS kind,
        sum(weighed) AS weighed
      FROM (
        SELECT owner, piece_bucket AS bucket, a, ms, live_bytes AS live, 0 AS allocated, 0 AS duration,
          period_bytes AS period, kind, weight * ms AS weighed FROM pieces
        UNION ALL
        SELECT owner, bucket, ts_ms, 0, 0, allocated_bytes, duration_ms, period_bytes, kind, 0 FROM held)
      GROUP BY owner, bucket`,
    `INSERT INTO ${to}.profiles BY NAME
      SELECT profile_id, owner AS series_id, ts_ms, duration AS duration_ms, kind, period AS period_bytes,
        coalesce(live / nullif(covered, 0), 0) AS live_bytes, allocated AS allocated_bytes, profile_id AS samples_id,
        covered AS carry_ms
      FROM buckets`,
    samplesStatement(from, to, "b.covered"),
  ];
}

function mergedStatements({ from, to, bucketMs, day }: RollParts): string[] {
  return [
    `CREATE OR REPLACE TEMP TABLE buckets AS
      SELECT owner, bucket, ${bucketId(day)} AS profile_id, bucket AS ts_ms, ${bucketMs} AS covered, sum(live) AS live,
        sum(allocated) AS allocated, max(duration) AS duration, max(period) AS period, any_value(kind) AS kind
      FROM (
        SELECT owner, piece_bucket AS bucket, live_bytes * ms AS live, 0 AS allocated, 0 AS duration,
          period_bytes AS period, kind FROM pieces
        UNION ALL
        SELECT owner, bucket, 0, allocated_bytes, duration_ms, period_bytes, kind FROM held)
      GROUP BY owner, bucket`,
    `INSERT INTO ${to}.profiles BY NAME
      SELECT profile_id, owner AS series_id, ts_ms, duration AS duration_ms, kind, period AS period_bytes,
        live / covered AS live_bytes, allocated AS allocated_bytes, profile_id AS samples_id, covered AS carry_ms
      FROM buckets`,
    samplesStatement(from, to, String(bucketMs)),
    `INSERT INTO ${to}.rolled_counts
      SELECT owner, bucket, sum(part) FROM (
        SELECT owner, piece_bucket AS bucket, root,
          max(weight) * (max(a + ms) - min(a)) / ${bucketMs} AS part
        FROM pieces GROUP BY owner, piece_bucket, root)
      GROUP BY owner, bucket`,
    `INSERT INTO ${to}.rolled_series BY NAME
      SELECT h.owner AS series_id, '' AS tenant, s.service, s.version, s.env, '' AS host, '' AS pod, '' AS container,
        0 AS pid, ${Date.parse(day)} AS started_ms, '' AS gpu,
        list_filter([${KEPT_LABELS.map((name) => `'${name}'`).join(", ")}], lambda name, i: [${keptValues()}][i] <> '') AS label_keys,
        list_filter([${keptValues()}], lambda v: v <> '') AS label_vals,
        '' AS namespace, '' AS workload, 0 AS ended_ms, 0 AS root_id, ${Date.parse(day)} AS recorded_ms, '' AS stream
      FROM (SELECT owner, any_value(series_id) AS series_id FROM held GROUP BY owner) h JOIN series s USING (series_id)`,
  ];
}

/** `covered`: how long the new row holds. */
const samplesStatement = (from: string, to: string, covered: string) => `
  INSERT INTO ${to}.samples BY NAME
    SELECT any_value(day) AS day, owner AS series_id, any_value(ts_ms) AS ts_ms, profile_id, stack_id, thread, label_id,
      age_bucket, sum(live_objects) AS live_objects, sum(live_bytes) AS live_bytes, sum(live_variance) AS live_variance,
      sum(allocated_objects) AS allocated_objects, sum(allocated_bytes) AS allocated_bytes, domain,
      max(peak_bytes) AS peak_bytes
    FROM (
      SELECT x.day, b.owner, b.ts_ms, b.profile_id, x.stack_id, x.thread, x.label_id, x.age_bucket, x.domain,
        x.live_objects * p.ms / ${covered} AS live_objects, x.live_bytes * p.ms / ${covered} AS live_bytes,
        x.live_variance * p.ms / ${covered} AS live_variance, 0 AS allocated_objects, 0 AS allocated_bytes,
        0 AS peak_bytes
      FROM (SELECT owner, piece_bucket, samples_id, sum(ms) AS ms FROM pieces GROUP BY ALL) p
        JOIN buckets b ON b.owner = p.owner AND b.bucket = p.piece_bucket
        JOIN ${from}.samples x ON x.profile_id = p.samples_id
      WHERE x.live_bytes > 0 OR x.live_objects > 0
      UNION ALL
      SELECT x.day, b.owner, b.ts_ms, b.profile_id, x.stack_id, x.thread, x.label_id, x.age_bucket, x.domain,
        0, 0, 0, x.allocated_objects, x.allocated_bytes, x.peak_bytes
      FROM held h JOIN buckets b ON b.owner = h.owner AND b.bucket = h.bucket
        JOIN ${from}.samples x ON x.profile_id = h.profile_id
      WHERE h.samples_id = h.profile_id AND (x.allocated_bytes <> 0 OR x.allocated_objects <> 0 OR x.peak_bytes > 0))
    GROUP BY owner, profile_id, stack_id, thread, label_id, age_bucket, domain`;

/** The metrics of a process stay its own in every tier. `most` is the largest reading. */
function metricsSql(parts: RollParts): string {
  const { from, isRolled, laterMetrics, bucketMs } = parts;
  const rolled = isRolled
    ? `UNION ALL SELECT series_id, name, ts_ms, value, most, carry_ms, true FROM ${from}.rolled_metrics`
    : "";
  const held = `(
    SELECT series_id, name, ts_ms, value, most, is_own, greatest(ts_ms, least(
        coalesce(lead(ts_ms) OVER (PARTITION BY series_id, name ORDER BY ts_ms, is_own), ${FOREVER}),
        ts_ms + carry_ms,
        CASE WHEN ended_ms > 0 THEN ended_ms ELSE ${FOREVER} END)) AS until_ms
    FROM (
      SELECT m.series_id, m.name, m.ts_ms, m.value, m.value AS most, CAST(${carrySql("m.name")} AS BIGINT) AS carry_ms,
        true AS is_own
      FROM ${from}.metrics m JOIN series s USING (series_id)
      ${rolled}
      UNION ALL
      SELECT series_id, name, min(ts_ms), 0, 0, 0, false FROM ${laterMetrics} GROUP BY series_id, name) m
      JOIN (SELECT series_id, ended_ms FROM series) s USING (series_id))`;
  const own = `(SELECT * FROM ${held} WHERE is_own)`;
  return `
    SELECT series_id, min(a), name, coalesce(sum(value * ms) / nullif(sum(ms), 0), avg(value)),
      greatest(1, sum(ms)), max(most)
    FROM (
      SELECT series_id, name, value, most, a, ms, piece_bucket AS bucket
      FROM (${piecesSql(own, { ...parts, isMerged: false })})
      UNION ALL
      SELECT series_id, name, value, most, ts_ms, 0, ts_ms // ${bucketMs} * ${bucketMs} FROM ${own})
    GROUP BY series_id, name, bucket`;
}
