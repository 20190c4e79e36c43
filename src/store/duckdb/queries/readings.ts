/** What recorded programs reported in a window: their newest figures, and the RSS of their services by hour. */
import type { Millis, TimeMs } from "../../../model/base/units.js";
import type { Window } from "../../interface/window.js";
import { READ, type SpanReadings } from "../kept/kept_readings.js";
import type { RowReader, Rows } from "../row_database.js";
import { SHORTEST_CARRY_MS } from "../sample_rows.js";
import { SOURCE_LABEL } from "../series_rows.js";
import { UNREAD_PEAK } from "../unread_peaks.js";
import {
  CARRY_MS,
  firstValidOftenMs,
  metricNames,
  type OfSeries,
  readingsSql,
  stepsSql,
  windowValues,
} from "./gauge.js";
import { byGroup, metricsIn, stepsOf, stepValues } from "./series.js";
import { HOUR_MS, type Part, spansOf, withData } from "./spans.js";

/** Steps of a sparkline that are at least this long begin and end with an hour. */
const HOURLY_STEP_MS = 2 * HOUR_MS;

/** The programs of a question: `service`, if they are all of one. */
export interface OfPrograms extends OfSeries {
  readonly service: string | null;
}

/** {@link READ} of a program. */
type Newest = readonly number[];

/** By series. */
export async function newestOf(
  database: RowReader,
  window: Window,
  of: OfPrograms,
): Promise<Map<bigint, Newest>> {
  return newestIn(await readingsOf(database, window, of, "newest"), window);
}

/** The same for few programs: without what is kept. */
export async function newestAtOnce(
  database: RowReader,
  window: Window,
  of: OfSeries,
): Promise<Map<bigint, Newest>> {
  const { startMs, endMs } = await withData(database, window, of);
  const part = { startMs, endMs, stepMs: Math.max(1, endMs - startMs), isKept: false };
  return newestIn(spansFrom(part, await newestRows(database, part, of), NO_ROWS), window);
}

function newestIn(spans: readonly SpanReadings[], { startMs }: Window): Map<bigint, Newest> {
  const found = new Map<bigint, number[]>();
  for (const { series, figures } of spans) {
    series.forEach((id, row) => {
      const own = figures.subarray(row * READ.length, (row + 1) * READ.length);
      const before = found.get(id);
      if (before === undefined) {
        found.set(id, [...own]);
        return;
      }
      READ.forEach((name, at) => {
        const [value = Number.NaN, known = Number.NaN] = [own[at], before[at]];
        if (!Number.isNaN(value)) {
          before[at] = LARGEST.has(name) && known > value ? known : value;
        }
      });
    });
  }
  for (const [id, figures] of found) {
    const [lastMs = Number.NaN, live = Number.NaN] = [figures[0], figures.at(-1)];
    // Only a profile of another profiler is shown longer than its program was seen.
    if (!(lastMs >= startMs) && Number.isNaN(live)) {
      found.delete(id);
    }
  }
  return found;
}

/** The others are those of the last span. */
const LARGEST: ReadonlySet<string> = new Set(["last_ms", "peak"] satisfies (typeof READ)[number][]);

/** RSS of each service in equal steps, the newest last; null: no instance reported. */
export async function sparklinesOf(
  database: RowReader,
  window: Window,
  steps: number,
  of: OfPrograms,
): Promise<Map<string, (number | null)[]>> {
  const stepMs = Math.max(1, Math.ceil((window.endMs - window.startMs) / steps));
  const count = stepsOf(window, stepMs);
  if (stepMs < HOURLY_STEP_MS) {
    return byGroup(await rssRows(database, window, stepMs, of), count);
  }
  const sums = new Map<string, { area: number; ms: number }[]>();
  for (const { startMs, endMs, hours } of await readingsOf(database, window, of, "hours")) {
    for (const [service, figures] of hours) {
      const own = sums.get(service) ?? Array.from({ length: count }, () => ({ area: 0, ms: 0 }));
      sums.set(service, own);
      for (let at = 0; at < figures.length; at += 2) {
        const fromMs = startMs + (at / 2) * HOUR_MS;
        const middleMs = (fromMs + Math.min(fromMs + HOUR_MS, endMs)) / 2;
        const step = own[Math.floor((middleMs - window.startMs) / stepMs)];
        if (step !== undefined) {
          step.area += figures[at] ?? 0;
          step.ms += figures[at + 1] ?? 0;
        }
      }
    }
  }
  return new Map(
    [...sums].map(([service, own]) => [
      service,
      own.map(({ area, ms }) => (ms > 0 ? area / ms : null)),
    ]),
  );
}

/** Parts of a window that are not kept are read for one question, so only what it needs is read. */
type Wanted = "newest" | "hours";

async function readingsOf(
  database: RowReader,
  window: Window,
  of: OfPrograms,
  wanted: Wanted,
): Promise<readonly SpanReadings[]> {
  const key = { text: JSON.stringify([of.sql, of.values]), service: of.service };
  const known = await withData(database, window, of);
  return spansOf(known, database.sums.readings, key, async (part) => {
    const newest =
      part.isKept || wanted === "newest" ? await newestRows(database, part, of) : NO_ROWS;
    const hours =
      part.isKept || wanted === "hours" ? await rssRows(database, part, HOUR_MS, of) : NO_ROWS;
    return spansFrom(part, newest, hours);
  });
}

const NO_ROWS: Rows = [];

function spansFrom(part: Part, newest: Rows, hours: Rows): SpanReadings[] {
  const { startMs, endMs, stepMs } = part;
  return Array.from({ length: Math.ceil((endMs - startMs) / stepMs) }, (_, step) => {
    const span = { startMs: startMs + step * stepMs, endMs: startMs + (step + 1) * stepMs };
    const rows = newest.filter((row) => Number(row.step) === step);
    return {
      ...span,
      series: BigUint64Array.from(rows, (row) => row.series_id as bigint),
      figures: Float64Array.from(rows.flatMap(figuresOf)),
      hours: hoursIn(
        span,
        hours.map((row) => ({ ...row, timeMs: startMs + Number(row.step) * HOUR_MS })),
      ),
    };
  });
}

function figuresOf(row: Rows[number]): number[] {
  return READ.map((name) => Number(row[name] ?? Number.NaN));
}

function hoursIn(
  { startMs, endMs }: Window,
  rows: readonly (Rows[number] & { readonly timeMs: TimeMs })[],
): Map<string, Float64Array> {
  const hours = new Map<string, Float64Array>();
  for (const { grp, value, ms, timeMs } of rows) {
    if (timeMs >= startMs && timeMs < endMs) {
      const service = String(grp);
      const own =
        hours.get(service) ?? new Float64Array(2 * Math.ceil((endMs - startMs) / HOUR_MS));
      hours.set(service, own);
      own.set([Number(value) * Number(ms), Number(ms)], (2 * (timeMs - startMs)) / HOUR_MS);
    }
  }
  return hours;
}

/** RSS of each service; the mean of a step is over the part of it in which an instance reported. */
function rssRows(
  database: RowReader,
  window: Window,
  stepMs: Millis,
  { sql, values }: OfPrograms,
): Promise<Rows> {
  const reach = { firstMs: firstValidOftenMs(window), endMs: window.endMs };
  const metrics = metricsIn(database, reach, { names: metricNames("rssBytes"), of: sql });
  const readings = readingsSql("rssBytes", { metrics, where: sql });
  return database.query(stepsSql(readings, { group: "s.service", over: "reported" }), {
    ...windowValues(window),
    first_ms: BigInt(reach.firstMs),
    ...stepValues(stepMs, stepsOf(window, stepMs)),
    ...values,
  });
}

/** When a row of the metrics `m` saw its program. A row of a coarser tier holds until its last reading is no longer valid;
 * figures other than these are valid long after a program has ended. */
const SEEN = `CASE WHEN m.carry_ms = 0 THEN m.ts_ms WHEN m.name IN ('treeRssBytes', 'liveBytes')
  THEN m.ts_ms + greatest(0, m.carry_ms - ${CARRY_MS}) END`;
/** The rows that say when, and what the page shows: in coarser tiers, a third of all. */
const SHOWN = `(m.carry_ms = 0 OR m.name IN ('treeRssBytes', '${UNREAD_PEAK}', 'liveBytes', 'cgroupLimitBytes', 'cgroupHighBytes'))`;
/** When a row of the profiles `p` of another profiler saw its program. */
const TAKEN = `p.ts_ms + greatest(0, p.carry_ms - ${SHORTEST_CARRY_MS})`;

/** Columns series_id, step, {@link READ}. Rows that are older than the part and valid in it count in the first step. */
function newestRows(
  database: RowReader,
  { startMs, endMs, stepMs }: Part,
  { sql, values }: OfSeries,
): Promise<Rows> {
  const window = { startMs, endMs };
  const fromMs = firstValidOftenMs(window);
  const days = database.daysIn(fromMs, endMs);
  const need = { fromMs, validFromMs: startMs, beforeMs: endMs, of: sql };
  const metrics = database.union("metrics", days, { ...need, newest: { startMs, stepMs } });
  const profiles = database.union("profiles", days, need);
  const step = (ms: string) => `greatest(0, (${ms} - $start_ms) // $step_ms) AS step`;
  return database.query(
    // A materialized `root` does not filter the rows that are joined to it, which takes twice as long.
    `WITH root AS NOT MATERIALIZED (
        SELECT s.* FROM series s WHERE s.series_id = s.root_id AND (${sql})),
      reported AS (
        SELECT m.series_id, ${step("m.ts_ms")}, max(${SEEN}) AS last_ms,
          arg_max(m.value, m.ts_ms) FILTER (m.name = 'treeRssBytes') AS rss,
          max(m.most) FILTER (m.name IN ('treeRssBytes', '${UNREAD_PEAK}')) AS peak,
          arg_max(m.value, m.ts_ms) FILTER (m.name = 'cgroupLimitBytes') AS limit_bytes,
          arg_max(m.value, m.ts_ms) FILTER (m.name = 'cgroupHighBytes') AS high_bytes,
          NULL AS live
        FROM ${metrics} m JOIN root USING (series_id)
        WHERE ${SHOWN} AND m.ts_ms >= $from_ms AND m.ts_ms + m.carry_ms >= $start_ms AND m.ts_ms < $end_ms
        GROUP BY ALL
        UNION ALL
        SELECT p.series_id, ${step("p.ts_ms")}, max(${TAKEN}), NULL, NULL, NULL, NULL, arg_max(p.live_bytes, p.ts_ms)
        FROM ${profiles} p JOIN root USING (series_id)
        WHERE p.ts_ms >= $from_ms AND (p.ts_ms >= $start_ms OR p.ts_ms + p.carry_ms > $start_ms) AND p.ts_ms < $end_ms
          AND (p.ts_ms >= $start_ms OR root.ended_ms = 0 OR root.ended_ms > $start_ms)
          AND list_contains(root.label_keys, '${SOURCE_LABEL}')
        GROUP BY ALL)
    SELECT series_id, step, ${READ.map((name) => `max(${name}) AS ${name}`).join(", ")}
    FROM reported GROUP BY series_id, step`,
    {
      ...windowValues(window),
      ...{ from_ms: BigInt(fromMs), step_ms: BigInt(stepMs) },
      ...values,
    },
  );
}
