/** Starts, ends and kills of recorded programs: what the alerts about restarts, OOM kills and silence need. */
import { Turns } from "../../../model/base/turns.js";
import type { ProcessLife } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import type { RowReader } from "../row_database.js";
import { EXIT_EVENT, exitCodeIn } from "../stream_rows.js";
import { windowValues } from "./gauge.js";
import { byProcess } from "./process_parts.js";

export async function processLives(database: RowReader, window: Window): Promise<ProcessLife[]> {
  const days = database.daysIn(window.startMs, window.endMs);
  const within = { fromMs: window.startMs, beforeMs: window.endMs };
  const names = ["treeRssBytes", "gpu.%"];
  const metrics = database.union("metrics", days, { ...within, names, newest: true });
  const events = database.union("events", days, within);
  const rows = await database.query(
    `WITH readings AS (
        SELECT series_id, name, ts_ms, value FROM ${metrics}
        WHERE ts_ms >= $start_ms AND ts_ms < $end_ms
          AND (name = 'treeRssBytes' OR name LIKE 'gpu.%.fragmentationRatio')),
      lasts AS (
        SELECT series_id, max(ts_ms) AS last_ms FROM readings WHERE name = 'treeRssBytes' GROUP BY series_id),
      devices AS (
        SELECT s.root_id, max(d.ratio) AS ratio FROM (
            SELECT series_id, name, arg_max(value, ts_ms) AS ratio FROM readings
            WHERE name <> 'treeRssBytes' GROUP BY series_id, name) d
          JOIN series s USING (series_id) WHERE s.ended_ms = 0 GROUP BY s.root_id),
      kills AS (
        SELECT s.root_id, list(e.ts_ms ORDER BY e.ts_ms) AS kills FROM ${events} e JOIN series s USING (series_id)
        WHERE e.kind = 'oom-kill' AND e.ts_ms >= $start_ms AND e.ts_ms < $end_ms GROUP BY s.root_id),
      exits AS (
        SELECT e.series_id, arg_max(e.body, e.ts_ms) AS ended FROM ${events} e
        WHERE e.kind = '${EXIT_EVENT}' AND e.ts_ms >= $start_ms AND e.ts_ms < $end_ms GROUP BY e.series_id)
    SELECT s.stream, s.service, s.version, s.host, s.pod, s.container, s.pid, s.recorded_ms, s.started_ms, s.ended_ms, l.last_ms, k.kills, d.ratio, x.ended
    FROM lasts l JOIN series s USING (series_id)
      LEFT JOIN kills k ON k.root_id = s.series_id LEFT JOIN devices d ON d.root_id = s.series_id
      LEFT JOIN exits x ON x.series_id = s.series_id
    WHERE s.series_id = s.root_id ORDER BY s.service, s.started_ms`,
    windowValues(window),
  );
  const lives = await new Turns().map(rows, (row) => ({
    container: String(row.container),
    pid: Number(row.pid),
    recordedMs: Number(row.recorded_ms),
    process: String(row.stream),
    service: String(row.service),
    version: String(row.version),
    host: String(row.host),
    pod: String(row.pod),
    startedMs: Number(row.started_ms),
    endedMs: Number(row.ended_ms) || null,
    exitCode: row.ended === null ? null : exitCodeIn(String(row.ended)),
    lastMs: Number(row.last_ms),
    killsMs:
      row.kills === null
        ? []
        : Array.from((row.kills as unknown as { items: readonly bigint[] }).items, Number),
    fragmentation: row.ratio === null ? null : Number(row.ratio),
  }));
  return byProcess(lives, (life) => life).flatMap((parts) => {
    const last = parts.at(-1);
    if (last === undefined) {
      return [];
    }
    const { container: _container, pid: _pid, recordedMs: _recordedMs, ...life } = last;
    return { ...life, killsMs: parts.flatMap(({ killsMs }) => killsMs).sort((a, b) => a - b) };
  });
}
