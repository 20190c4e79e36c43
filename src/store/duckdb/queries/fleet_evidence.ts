/**
 * What the fleet's diagnosis needs from the store: the RSS of each process, its requests, start, version and limit, and what
 * its own diagnosis found; and the live bytes of lines, which only services that leak need.
 *
 * Steps are short in the last hour and longer before, so that each of the diagnosis's windows (1 h, 6 h, 1 d, 7 d) has about
 * a hundred of them, and a process of two weeks about 900.
 */
import {
  type FleetProcess,
  type LineHolder,
  type ServiceEvidence,
  SHORT_LIFE_MS,
  type SiteReadings,
} from "../../../diagnose/index.js";
import type { Millis } from "../../../model/base/units.js";
import { CALM_KINDS, type VerdictKind } from "../../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../../model/documents/documents.js";
import { ownFrame } from "../../../model/documents/own_code.js";
import { FrameKind } from "../../../model/profile/profile.js";
import type { ServiceSpan } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import type { RowReader, Rows } from "../row_database.js";
import { SOURCE_LABEL } from "../series_rows.js";
import { CARRY_MS, windowValues, within } from "./gauge.js";
import { UNMEASURED } from "./instances.js";
import { framesOfStacks } from "./profile.js";
import { byService, processOf, readingsIn, type StoredProcess } from "./stored_process.js";

const MINUTE_MS: Millis = 60_000;
const HOUR_MS: Millis = 60 * MINUTE_MS;
const DAY_MS: Millis = 24 * HOUR_MS;
/** Readings that are younger than `sinceMs` at the end of the window are medians over `stepMs`. */
const STEPS = [
  { sinceMs: HOUR_MS, stepMs: MINUTE_MS },
  { sinceMs: 6 * HOUR_MS, stepMs: 4 * MINUTE_MS },
  { sinceMs: DAY_MS, stepMs: 15 * MINUTE_MS },
] as const;
const LONGEST_STEP_MS: Millis = 30 * MINUTE_MS;
/** Of a coarser tier. */
const SHORTEST_BUCKET_MS: Millis = 10 * MINUTE_MS;
/** Short at the end: an agent may have been there for an hour only. */
const SITE_STEPS = [
  { sinceMs: 6 * HOUR_MS, stepMs: 6 * MINUTE_MS },
  { sinceMs: DAY_MS, stepMs: 30 * MINUTE_MS },
] as const;
const LONGEST_SITE_STEP_MS: Millis = 4 * HOUR_MS;
/** Stacks with most live bytes; the others are not compared. */
const MOST_STACKS = 300;

/** Services with an RSS in the window, by name. */
export async function fleetServices(database: RowReader, window: Window): Promise<ServiceSpan[]> {
  const metrics = database.union("metrics", database.daysIn(window.startMs, window.endMs), {
    ...within(window),
    names: ["treeRssBytes"],
    newest: true,
  });
  const rows = await database.query(
    `SELECT s.service, count(*) AS processes, max(m.last_ms) AS last_ms FROM (
        SELECT series_id, max(ts_ms) AS last_ms FROM ${metrics}
        WHERE name = 'treeRssBytes' AND ts_ms >= $start_ms AND ts_ms < $end_ms GROUP BY series_id
      ) m JOIN series s USING (series_id)
    WHERE s.series_id = s.root_id GROUP BY s.service ORDER BY s.service`,
    windowValues(window),
  );
  return rows.map((row) => ({
    service: String(row.service),
    processes: Number(row.processes),
    lastMs: Number(row.last_ms),
  }));
}

/** A process that ended within a minute, and whose memory grew. Only where an agent ran are there enough readings to measure it. */
const IS_SHORT = `root.ended_ms > 0 AND root.ended_ms - root.started_ms <= ${SHORT_LIFE_MS}
  AND v.growth > 0 AND v.kind NOT IN (${[...CALM_KINDS].map((kind) => `'${kind}'`).join(", ")})`;

/** Without sites, in the order of `services`. */
export async function fleetEvidence(
  database: RowReader,
  services: readonly string[],
  window: Window,
): Promise<ServiceEvidence[]> {
  if (services.length === 0) {
    return [];
  }
  const names = services.map((_, at) => `$service_${at}`).join(", ");
  const metrics = database.union("metrics", database.daysIn(window.startMs, window.endMs), {
    ...within(window),
    of: `s.service IN (${names})`,
    names: ["treeRssBytes", "cgroupLimitBytes", "requestsPerSecond"],
  });
  const rows = await database.query(
    `WITH root AS (
        SELECT s.* FROM series s WHERE s.series_id = s.root_id AND s.service IN (${names})),
      metrics AS (
        SELECT m.* FROM ${metrics} m JOIN root USING (series_id)
        WHERE m.ts_ms >= $start_ms AND m.ts_ms < $end_ms
          AND m.name IN ('treeRssBytes', 'cgroupLimitBytes')),
      steps AS (
        SELECT series_id, avg(ts_ms) AS ts, median(value) AS value FROM (
          SELECT *, ${stepSql(STEPS, LONGEST_STEP_MS)} AS step FROM metrics WHERE name = 'treeRssBytes')
        GROUP BY series_id, step, ts_ms // step),
      rss AS (
        SELECT series_id, list(ts ORDER BY ts) AS times, list(value ORDER BY ts) AS vals
        FROM steps GROUP BY series_id),
      newest AS (
        SELECT series_id, max(ts_ms + greatest(0, carry_ms - ${CARRY_MS})) FILTER (name = 'treeRssBytes') AS last_ms,
          arg_max(value, ts_ms) FILTER (name = 'cgroupLimitBytes') AS limit_bytes
        FROM metrics GROUP BY series_id),
      requests AS (${requestsSql(metrics, names)})
    SELECT root.*, rss.times, rss.vals, requests.times AS request_times, requests.vals AS request_vals, newest.last_ms, newest.limit_bytes,
      v.kind, v.growth, CASE WHEN ${IS_SHORT} THEN v.summary END AS observed, v.limit_bytes AS verdict_limit, h.holders
    FROM root JOIN rss USING (series_id) JOIN newest USING (series_id) LEFT JOIN requests USING (series_id)
      LEFT JOIN verdicts v ON v.stream = root.stream
      LEFT JOIN verdict_holders h ON h.stream = root.stream
    ORDER BY root.started_ms, root.stream`,
    {
      ...windowValues(window),
      ...Object.fromEntries(services.map((service, at) => [`service_${at}`, service])),
    },
  );
  return byService(services, window, rows, evidenceOf);
}

/**
 * Requests a second of each program: the sum over its processes, which are read at the same moments, as a mean over steps. Rows of
 * coarser tiers are means, too, over the time for which they hold.
 */
function requestsSql(metrics: string, services: string): string {
  const read = `CASE WHEN carry_ms > 0 THEN ts_ms // ${SHORTEST_BUCKET_MS} * ${SHORTEST_BUCKET_MS} ELSE ts_ms END`;
  return `SELECT root_id AS series_id, list(ts ORDER BY ts) AS times, list(value ORDER BY ts) AS vals FROM (
      SELECT root_id, avg(ts_ms) AS ts, sum(area) / sum(held) AS value FROM (
        SELECT *, ${stepSql(STEPS, LONGEST_STEP_MS)} AS step FROM (
          SELECT s.root_id, ${read} AS ts_ms, sum(value * greatest(1, carry_ms)) AS area, max(greatest(1, carry_ms)) AS held
          FROM ${metrics} m JOIN series s USING (series_id)
          WHERE m.name = 'requestsPerSecond' AND s.service IN (${services}) AND m.ts_ms >= $start_ms AND m.ts_ms < $end_ms
          GROUP BY ALL))
      GROUP BY root_id, step, ts_ms // step)
    GROUP BY root_id`;
}

function evidenceOf(
  row: Rows[number],
  window: Window,
): StoredProcess & Omit<FleetProcess, "instance"> {
  const { readings, ...process } = processOf(row, window);
  const text = (name: string) => String(row[name] ?? "");
  return {
    ...process,
    rss: readings,
    requests: readingsIn(row, "request"),
    sites: [],
    kind: row.kind === null || row.kind === undefined ? null : (text("kind") as VerdictKind),
    ...(row.kind === null || row.kind === undefined || text("kind") === UNMEASURED
      ? {}
      : { growthBytesPerHour: Number(row.growth ?? 0) }),
    ...(text("observed") === "" ? {} : { observed: text("observed") }),
    holders: text("holders") === "" ? [] : (JSON.parse(text("holders")) as LineHolder[]),
  };
}

/** By process (the name of its stream): live bytes of the lines that its stacks are attributed to, 0 where a profile has none. */
export async function fleetSites(
  database: RowReader,
  streams: readonly string[],
  window: Window,
): Promise<Map<string, SiteReadings[]>> {
  if (streams.length === 0) {
    return new Map();
  }
  const days = database.daysIn(window.startMs, window.endMs);
  const names = streams.map((_, at) => `$stream_${at}`).join(", ");
  const of = `s.root_id IN (SELECT series_id FROM series WHERE stream IN (${names}))`;
  const profiles = database.union("profiles", days, { ...within(window), of });
  // Samples may be older than the profile that uses them.
  const samples = database.union("samples", days, { beforeMs: window.endMs, of });
  const chosen = `WITH root AS (SELECT series_id, stream FROM series WHERE stream IN (${names})),
    own AS (SELECT s.series_id, root.stream FROM series s JOIN root ON root.series_id = s.root_id),
    chosen AS (
      SELECT stream, samples_id, step, ts_ms // step AS bin, (ts_ms // step) * step + step // 2 AS ts FROM (
        SELECT p.*, own.stream, ${stepSql(SITE_STEPS, LONGEST_SITE_STEP_MS)} AS step
        FROM ${profiles} p JOIN own USING (series_id)
        WHERE p.ts_ms >= $start_ms AND p.ts_ms < $end_ms
          AND NOT EXISTS (SELECT 1 FROM series x
            WHERE x.series_id = p.series_id AND list_contains(x.label_keys, '${SOURCE_LABEL}')))
      QUALIFY row_number() OVER (PARTITION BY series_id, step, ts_ms // step ORDER BY ts_ms DESC) = 1)`;
  const values = {
    ...windowValues(window),
    ...Object.fromEntries(streams.map((stream, at) => [`stream_${at}`, stream])),
  };
  const times = await database.query(
    `${chosen} SELECT DISTINCT stream, ts FROM chosen ORDER BY stream, ts`,
    values,
  );
  const rows = await database.query(
    `${chosen},
    live AS (
      SELECT c.stream, c.ts, x.stack_id, sum(x.live_bytes) AS bytes
      FROM ${samples} x JOIN chosen c ON x.profile_id = c.samples_id
      WHERE x.live_bytes > 0 GROUP BY ALL)
    SELECT * FROM live WHERE stack_id IN (
      SELECT stack_id FROM live GROUP BY stack_id ORDER BY max(bytes) DESC, stack_id LIMIT ${MOST_STACKS})`,
    values,
  );
  return sitesOf(times, rows, await stacksOf(database, rows));
}

async function stacksOf(database: RowReader, rows: Rows): Promise<Map<bigint, FrameJson[]>> {
  const kinds = Object.keys(FrameKind) as (keyof typeof FrameKind)[];
  return new Map(
    [
      ...(await framesOfStacks(
        database,
        rows.map((row) => row.stack_id as bigint),
      )),
    ].map(([id, frames]) => [
      id,
      frames.map(({ name, file, line, kind }) => ({
        ...{ function: name, file, line },
        kind: kinds[kind] ?? "mark",
      })),
    ]),
  );
}

function sitesOf(
  times: Rows,
  rows: Rows,
  stacks: ReadonlyMap<bigint, FrameJson[]>,
): Map<string, SiteReadings[]> {
  const timesOf = new Map<string, number[]>();
  for (const { stream, ts } of times) {
    const own = timesOf.get(String(stream)) ?? [];
    own.push(Number(ts));
    timesOf.set(String(stream), own);
  }
  const placeOf = new Map(
    [...timesOf].map(([stream, own]) => [stream, new Map(own.map((time, at) => [time, at]))]),
  );
  const sites = new Map<
    string,
    Map<string, { stack: FrameJson[]; live: { times: number[]; values: number[] } }>
  >();
  for (const row of rows) {
    const stack = stacks.get(row.stack_id as bigint) ?? [];
    const line = ownFrame(stack);
    const stream = String(row.stream);
    const place = placeOf.get(stream)?.get(Number(row.ts));
    if (line === undefined || place === undefined) {
      continue;
    }
    const ofStream = sites.get(stream) ?? new Map();
    sites.set(stream, ofStream);
    const key = `${line.file}\n${line.line}\n${line.function}`;
    let site = ofStream.get(key);
    if (site === undefined) {
      const own = timesOf.get(stream) ?? [];
      site = { stack, live: { times: own, values: new Array<number>(own.length).fill(0) } };
      ofStream.set(key, site);
    }
    site.live.values[place] += Number(row.bytes);
  }
  return new Map([...sites].map(([stream, ofStream]) => [stream, [...ofStream.values()]]));
}

function stepSql(
  steps: readonly { readonly sinceMs: Millis; readonly stepMs: Millis }[],
  longest: Millis,
): string {
  const cases = steps.map(
    ({ sinceMs, stepMs }) => `WHEN ts_ms >= $end_ms - ${sinceMs} THEN ${stepMs}`,
  );
  return `CASE ${cases.join(" ")} ELSE ${longest} END`;
}
