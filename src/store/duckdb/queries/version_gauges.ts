/** The newest figures of running instances, by service and version. */
import type { TimeMs } from "../../../model/base/units.js";
import type { VersionGauges } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import type { RowReader, Rows } from "../row_database.js";
import { CARRY_MS, firstValidMs, windowValues, within } from "./gauge.js";
import { UNMEASURED } from "./instances.js";

const HOUR_MS = 3_600_000;
const AHEAD_MS = 24 * HOUR_MS;
/** Unlike RSS, unknown once a program reports them no more. */
const BRIEF = ["deviceBytes", "requestsPerSecond"];
const OFTEN = ["treeRssBytes", "treePssBytes", "cgroupLimitBytes", ...BRIEF];
const NAMES = [...OFTEN, "ledger.%"];
const listed = (names: readonly string[]) => names.map((name) => `'${name}'`).join(", ");

/** As on the pages (services.ts): what the verdict said when it was made, with what has been used since. */
const TIME_TO_LIMIT = `CASE
  WHEN v.growth > 0 AND u.rss > 0 AND coalesce(nullif(u.limit_bytes, 0), v.limit_bytes) > 0
  THEN greatest(1, (coalesce(nullif(u.limit_bytes, 0), v.limit_bytes) - u.rss) / v.growth * ${HOUR_MS})
  ELSE v.ms_to_limit END`;

export async function versionGauges(database: RowReader, nowMs: TimeMs): Promise<VersionGauges[]> {
  // Clocks of programs may be ahead.
  const recent = { startMs: nowMs - CARRY_MS, endMs: nowMs + AHEAD_MS };
  const running = runningSql(database, recent);
  const since = { since_ms: BigInt(Math.round(recent.startMs)) };
  // PSS and the ledger are read at growing intervals.
  const startMs = await firstValidMs(database, recent, {
    ...{ sql: `s.series_id IN (SELECT series_id FROM (${running}))`, values: since },
  });
  const window = { ...recent, startMs };
  const days = database.daysIn(window.startMs, window.endMs);
  const metrics = database.union("metrics", days, {
    ...{ ...within(window), names: NAMES, newest: true },
  });
  const profiles = database.union("profiles", days, within(window));
  const values = { ...windowValues(window), ...since };
  const figures = await database.query(
    `WITH running AS (${running}),
      newest AS (
        SELECT series_id, name, arg_max(value, ts_ms) AS value FROM ${metrics}
        WHERE ts_ms >= $start_ms AND ts_ms < $end_ms
          AND (name IN (${listed(OFTEN)}) OR name LIKE 'ledger.%')
          AND (name NOT IN (${listed(BRIEF)}) OR ts_ms >= $since_ms)
        GROUP BY series_id, name
        UNION ALL
        SELECT series_id, 'live', arg_max(live_bytes, ts_ms) FROM ${profiles}
        WHERE ts_ms >= $start_ms AND ts_ms < $end_ms GROUP BY series_id)
    SELECT s.service, s.version, n.name, sum(n.value) AS value, count(DISTINCT s.root_id) AS instances
    FROM newest n JOIN running s USING (series_id)
    WHERE n.name NOT IN ('treeRssBytes', 'treePssBytes', 'cgroupLimitBytes') OR s.series_id = s.root_id
    GROUP BY ALL`,
    values,
  );
  const verdicts = await database.query(
    `WITH running AS (${running}),
      used AS (
        SELECT series_id, arg_max(value, ts_ms) FILTER (name = 'treeRssBytes') AS rss,
          arg_max(value, ts_ms) FILTER (name = 'cgroupLimitBytes') AS limit_bytes
        FROM ${metrics} WHERE ts_ms >= $start_ms AND ts_ms < $end_ms
          AND name IN ('treeRssBytes', 'cgroupLimitBytes') GROUP BY series_id)
    SELECT s.service, s.version, coalesce(v.kind, 'none') AS kind, count(*) AS n,
      sum(v.growth) FILTER (v.kind <> '${UNMEASURED}') AS growth,
      min(${TIME_TO_LIMIT}) FILTER (v.ms_to_limit > 0) AS ms_to_limit
    FROM running s LEFT JOIN verdicts v ON v.stream = s.stream LEFT JOIN used u USING (series_id)
    WHERE s.series_id = s.root_id GROUP BY ALL`,
    values,
  );
  return combined(figures, verdicts);
}

/** Those that reported since `$since_ms`. */
function runningSql(database: RowReader, recent: Window): string {
  const days = database.daysIn(recent.startMs, recent.endMs);
  const metrics = database.union("metrics", days, { ...within(recent), newest: true });
  const profiles = database.union("profiles", days, within(recent));
  return `SELECT s.* FROM series s WHERE s.ended_ms = 0 AND s.root_id IN (
    SELECT DISTINCT r.root_id FROM series r WHERE r.series_id IN (
      SELECT series_id FROM ${metrics} WHERE ts_ms >= $since_ms
      UNION SELECT series_id FROM ${profiles} WHERE ts_ms >= $since_ms))`;
}

function combined(figures: Rows, verdicts: Rows): VersionGauges[] {
  const rows = new Map<string, { -readonly [Key in keyof VersionGauges]: VersionGauges[Key] }>();
  const rowOf = (row: Rows[number]) => {
    const [service, version] = [String(row.service), String(row.version)];
    const key = JSON.stringify([service, version]);
    let found = rows.get(key);
    if (found === undefined) {
      found = {
        ...{ service, version, instances: 0, rssBytes: null, pssBytes: null, liveBytes: null },
        ...{ deviceBytes: null, growthBytesPerHour: null, limitBytes: null, msToLimit: null },
        ...{ requestsPerSecond: null, profiledInstances: 0 },
        ...{ parts: {}, verdicts: {} },
      };
      rows.set(key, found);
    }
    return found;
  };
  for (const row of verdicts) {
    const found = rowOf(row);
    const count = Number(row.n);
    found.instances += count;
    found.verdicts = { ...found.verdicts, [String(row.kind)]: count };
    if (row.growth !== null) {
      found.growthBytesPerHour = (found.growthBytesPerHour ?? 0) + Number(row.growth);
    }
    if (row.ms_to_limit !== null) {
      const left = Number(row.ms_to_limit);
      found.msToLimit = Math.min(found.msToLimit ?? left, left);
    }
  }
  for (const row of figures) {
    const found = rowOf(row);
    const value = Number(row.value);
    const name = String(row.name);
    const field = FIELDS[name];
    if (field === "liveBytes") {
      found.profiledInstances = Number(row.instances);
    }
    if (field !== undefined) {
      found[field] = value;
    } else {
      found.parts = { ...found.parts, [name.replace(/^ledger\./, "")]: value };
    }
  }
  return [...rows.values()];
}

const FIELDS: Readonly<
  Record<
    string,
    "rssBytes" | "pssBytes" | "limitBytes" | "liveBytes" | "deviceBytes" | "requestsPerSecond"
  >
> = {
  treeRssBytes: "rssBytes",
  treePssBytes: "pssBytes",
  cgroupLimitBytes: "limitBytes",
  live: "liveBytes",
  deviceBytes: "deviceBytes",
  requestsPerSecond: "requestsPerSecond",
};
