/** The flame graph of a window: profiles of many processes, merged by stack. */
import { Domain, FrameKind } from "../../../model/profile/profile.js";
import { newSiteTable } from "../../../model/profile/site_columns.js";
import { ProfileTablesBuilder } from "../../../model/profile/tables_builder.js";
import type { ProfileQuery, WindowProfile } from "../../interface/store.js";
import type { Rows, StoreDatabase } from "../database.js";
import { selectionSql, selectionValues, windowValues } from "./gauge.js";
import { matchersSql } from "./labels.js";

const MS_PER_DAY = 86_400_000;

/** Each profile counts for the share of the window in which it was the newest of its process; its allocated bytes count
completely if the profile is in the window. */
const HELD_SQL = (profiles: string, condition: string) => `
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
      WHERE p.ts_ms >= $start_ms - ${MS_PER_DAY} AND p.ts_ms < $end_ms)`;

const SAMPLES_SQL = (profiles: string, samples: string, condition: string, ages: string) => `
  ${HELD_SQL(profiles, condition)},
    weighed AS (
      SELECT samples_id,
        sum(greatest(0, until_ms - greatest(ts_ms, $start_ms))) / ($end_ms - $start_ms) AS live_weight,
        max(CASE WHEN samples_id = profile_id AND ts_ms >= $start_ms THEN 1 ELSE 0 END) AS counts,
        count(*) AS profiles
      FROM held GROUP BY samples_id)
  SELECT x.stack_id, x.domain,
    sum(x.live_bytes * w.live_weight) AS live_bytes,
    sum(x.live_objects * w.live_weight) AS live_objects,
    sum(x.live_variance * w.live_weight) AS live_variance,
    sum(x.allocated_bytes * w.counts) AS allocated_bytes,
    sum(x.allocated_objects * w.counts) AS allocated_objects
  FROM ${samples} x JOIN weighed w ON x.profile_id = w.samples_id
  WHERE (w.live_weight > 0 OR w.counts > 0) AND (${ages})
  GROUP BY x.stack_id, x.domain
  ORDER BY live_bytes DESC, allocated_bytes DESC, x.stack_id`;

/**
 * An instance counts from the first to the last moment at which one of its processes has a profile. A merged profile, of
 * no root, counts for those that it is the sum of.
 */
const INSTANCES_SQL = (profiles: string, counts: string, condition: string) => `
  ${HELD_SQL(profiles, condition)},
    valid AS (
      SELECT *, greatest(ts_ms, $start_ms) AS from_ms FROM held WHERE until_ms > greatest(ts_ms, $start_ms))
  SELECT coalesce(sum(span), 0) / ($end_ms - $start_ms) AS instances FROM (
    SELECT max(until_ms) - min(from_ms) AS span FROM valid WHERE root_id <> 0 GROUP BY root_id
    UNION ALL
    SELECT (v.until_ms - v.from_ms) * c.instances
    FROM valid v JOIN ${counts} c ON c.series_id = v.series_id AND c.ts_ms = v.ts_ms WHERE v.root_id = 0)`;

/** Class b has ages of 2^(b-1) to 2^b ms. */
function agesSql({ ages }: ProfileQuery): string {
  if (ages === undefined) {
    return "true";
  }
  const least = Math.ceil(Math.log2(Math.max(1, ages.leastMs))) + 1;
  const most = Math.floor(Math.log2(Math.max(1, ages.mostMs)));
  return `x.age_bucket BETWEEN ${least} AND ${most}`;
}

export async function windowProfile(
  database: StoreDatabase,
  query: ProfileQuery,
): Promise<WindowProfile> {
  const days = database.daysIn(query.startMs - MS_PER_DAY, query.endMs);
  const { of } = query;
  const condition =
    "service" in of
      ? { sql: selectionSql(of), values: selectionValues(of) }
      : await matchersSql(database, of);
  const profiles = database.union("profiles", days);
  const samples = database.union("samples", days);
  const values = { ...windowValues(query), ...condition.values };
  const sql = SAMPLES_SQL(profiles, samples, condition.sql, agesSql(query));
  const rows = await database.query(sql, values);
  const [count] = await database.query(
    INSTANCES_SQL(profiles, database.rolledCounts(days), condition.sql),
    values,
  );
  const live = rows.filter((row) => Number(row.live_bytes) > 0 || Number(row.allocated_bytes) > 0);
  const shown = live.slice(0, query.mostStacks);
  const rest = live.slice(query.mostStacks);
  const stacks = await framesOfStacks(database, shown);
  return {
    ...profileOf(query, shown, rest, stacks),
    otherStacks: rest.length,
    profiles: rows.length,
    instances: Number(count?.instances ?? 0),
  };
}

interface StoredFrame {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly kind: FrameKind;
}

/** By stack id: its frames, leaf first. */
export async function framesOfStacks(
  database: StoreDatabase,
  rows: Rows,
): Promise<Map<bigint, StoredFrame[]>> {
  const ids = [...new Set(rows.map((row) => row.stack_id as bigint))];
  if (ids.length === 0) {
    return new Map();
  }
  // The ids are numbers from the database.
  const wanted = `(SELECT unnest([${ids.join(", ")}]::UBIGINT[]) AS stack_id)`;
  const stacks = await database.query(
    `SELECT stack_id, frame_ids FROM stacks JOIN ${wanted} USING (stack_id)`,
  );
  const frames = await database.query(
    `SELECT frame_id, function, file, line, kind FROM frames WHERE frame_id IN (
      SELECT unnest(frame_ids) FROM stacks JOIN ${wanted} USING (stack_id))`,
  );
  const byId = new Map<bigint, StoredFrame>(
    frames.map((row) => [
      row.frame_id as bigint,
      {
        name: String(row.function),
        file: String(row.file),
        line: Number(row.line),
        kind: FrameKind[String(row.kind) as keyof typeof FrameKind],
      },
    ]),
  );
  return new Map(
    stacks.map((row) => [
      row.stack_id as bigint,
      (row.frame_ids as unknown as { items: bigint[] }).items.flatMap((id) => byId.get(id) ?? []),
    ]),
  );
}

function profileOf(
  { startMs, endMs }: ProfileQuery,
  shown: Rows,
  rest: Rows,
  stacks: ReadonlyMap<bigint, StoredFrame[]>,
): Pick<WindowProfile, "tables" | "snapshot"> {
  const builder = new ProfileTablesBuilder();
  const about = { pid: 0, parentPid: 0, command: [], python: "", startedMs: startMs };
  const process = builder.addProcess({ ...about, periodBytes: 0 });
  builder.addThread({ process, tid: 0, name: "", isMain: true });
  const sites = newSiteTable(shown.length + (rest.length > 0 ? 1 : 0), 1);
  shown.forEach((row, at) => {
    const frames = stacks.get(row.stack_id as bigint) ?? [];
    sites.stack[at] = frames.reduceRight(
      (parent, { name, file, line, kind }) =>
        builder.stack(
          parent,
          builder.frame(builder.string(name), builder.string(file), line, 0, kind, 0),
        ),
      0,
    );
    sites.domain[at] = Domain[String(row.domain) as keyof typeof Domain] ?? Domain.python;
    addFigures(sites, at, row);
  });
  if (rest.length > 0) {
    const at = shown.length;
    const name = builder.string(`other: ${rest.length} stacks`);
    sites.stack[at] = builder.stack(
      0,
      builder.frame(name, builder.string(""), 0, 0, FrameKind.mark, 0),
    );
    for (const row of rest) {
      addFigures(sites, at, row);
    }
  }
  const snapshot = {
    timeMs: endMs,
    durationMs: endMs - startMs,
    sites,
    files: newSiteTable(0, 1),
    copies: newSiteTable(0, 1),
    cohorts: [endMs],
    peakMs: [0],
  };
  return { tables: builder.tables(), snapshot };
}

const FIGURES = [
  ["liveBytes", "live_bytes"],
  ["liveObjects", "live_objects"],
  ["liveVariance", "live_variance"],
  ["allocatedBytes", "allocated_bytes"],
  ["allocatedObjects", "allocated_objects"],
  ["cohortBytes", "live_bytes"],
] as const;

function addFigures(sites: ReturnType<typeof newSiteTable>, at: number, row: Rows[number]): void {
  for (const [column, name] of FIGURES) {
    sites[column][at] = (sites[column][at] ?? 0) + Math.max(0, Number(row[name] ?? 0));
  }
}
