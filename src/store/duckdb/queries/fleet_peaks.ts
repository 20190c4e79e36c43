/** What right-sizing needs from the store: the hourly peaks of each process, its limit and its kills. */
import type { SizedProcess, SizeEvidence } from "../../../diagnose/index.js";
import type { Millis } from "../../../model/base/units.js";
import type { Window } from "../../interface/window.js";
import type { RowReader, Rows } from "../row_database.js";
import { UNREAD_PEAK } from "../unread_peaks.js";
import { CARRY_MS, windowValues, within } from "./gauge.js";
import { byService, processOf, type StoredProcess } from "./stored_process.js";

const HOUR_MS: Millis = 3_600_000;
const READ = ["treeRssBytes", UNREAD_PEAK, "treePssBytes", "cgroupUsageBytes", "cgroupLimitBytes"];

/**
 * In the order of `services`. Peaks are those of RSS, less the pages that a program and its child processes share. How many
 * bytes these are is known from the last reading of PSS; where RSS has fallen since, they have fallen by the same factor.
 */
export async function fleetPeaks(
  database: RowReader,
  services: readonly string[],
  window: Window,
): Promise<SizeEvidence[]> {
  if (services.length === 0) {
    return [];
  }
  const days = database.daysIn(window.startMs, window.endMs);
  const names = services.map((_, at) => `$service_${at}`).join(", ");
  const need = { ...within(window), of: `s.service IN (${names})` };
  const metrics = database.union("metrics", days, {
    ...need,
    names: READ,
  });
  const events = database.union("events", days, need);
  const rows = await database.query(
    `WITH root AS (
        SELECT s.* FROM series s WHERE s.series_id = s.root_id AND s.service IN (${names})),
      metrics AS (
        SELECT m.* FROM ${metrics} m JOIN root USING (series_id)
        WHERE m.ts_ms >= $start_ms AND m.ts_ms < $end_ms
          AND m.name IN (${READ.map((name) => `'${name}'`).join(", ")})),
      rss AS (SELECT series_id, ts_ms, value FROM metrics WHERE name = 'treeRssBytes'),
      pairs AS (
        SELECT p.series_id, p.ts_ms, greatest(0, r.value - p.value) AS bytes, least(1, p.value / r.value) AS share
        FROM metrics p ASOF JOIN rss r ON p.series_id = r.series_id AND p.ts_ms >= r.ts_ms
        WHERE p.name = 'treePssBytes' AND r.value > 0),
      shared AS (SELECT series_id, avg(bytes) AS bytes, avg(share) AS share FROM pairs GROUP BY series_id),
      hours AS (
        SELECT m.series_id, (m.ts_ms // ${HOUR_MS}) * ${HOUR_MS} AS ts,
          max(greatest(coalesce(m.most, m.value) - coalesce(pairs.bytes, shared.bytes, 0),
            coalesce(m.most, m.value) * coalesce(pairs.share, shared.share, 1))) AS peak
        FROM metrics m ASOF LEFT JOIN pairs ON m.series_id = pairs.series_id AND m.ts_ms >= pairs.ts_ms
          LEFT JOIN shared ON shared.series_id = m.series_id
        WHERE m.name IN ('treeRssBytes', '${UNREAD_PEAK}') GROUP BY ALL),
      peaks AS (
        SELECT series_id, list(ts ORDER BY ts) AS times, list(peak ORDER BY ts) AS vals
        FROM hours GROUP BY series_id),
      beside AS (
        SELECT u.series_id, median(greatest(0, u.value - r.value * coalesce(shared.share, 1))) AS bytes
        FROM metrics u ASOF JOIN rss r ON u.series_id = r.series_id AND u.ts_ms >= r.ts_ms
          LEFT JOIN shared ON shared.series_id = u.series_id
        WHERE u.name = 'cgroupUsageBytes' GROUP BY u.series_id),
      newest AS (
        SELECT series_id, max(ts_ms + greatest(0, carry_ms - ${CARRY_MS})) FILTER (name = 'treeRssBytes') AS last_ms,
          arg_max(value, ts_ms) FILTER (name = 'cgroupLimitBytes') AS limit_bytes
        FROM metrics GROUP BY series_id),
      kills AS (
        SELECT s.root_id AS series_id, list(e.ts_ms ORDER BY e.ts_ms) AS kills
        FROM ${events} e JOIN series s USING (series_id)
        -- Where the machine was short of memory, the limit was not the cause.
        WHERE e.kind = 'oom-kill' AND NOT contains(e.body, '(the machine)') AND e.ts_ms >= $start_ms AND e.ts_ms < $end_ms GROUP BY s.root_id)
    SELECT root.*, peaks.times, peaks.vals, newest.last_ms, newest.limit_bytes, coalesce(beside.bytes, 0) AS beside_bytes,
      coalesce(kills.kills, []) AS kills, v.limit_bytes AS verdict_limit
    FROM root JOIN peaks USING (series_id) JOIN newest USING (series_id)
      LEFT JOIN beside USING (series_id) LEFT JOIN kills USING (series_id)
      LEFT JOIN verdicts v ON v.stream = root.stream
    ORDER BY root.started_ms, root.stream`,
    {
      ...windowValues(window),
      ...Object.fromEntries(services.map((service, at) => [`service_${at}`, service])),
    },
  );
  return byService(services, window, rows, sizedOf);
}

function sizedOf(
  row: Rows[number],
  window: Window,
): StoredProcess & Omit<SizedProcess, "instance"> {
  const process = processOf(row, window);
  return {
    ...process,
    peaks: process.readings,
    besideBytes: Number(row.beside_bytes),
    killsMs: Array.from((row.kills as unknown as { items: readonly bigint[] }).items, Number),
  };
}
