/** What the database's files hold, by service and tier; and what streams are about. */
import type { StorageUse, StreamAbout } from "../../interface/store.js";
import { TIERS } from "../../interface/tiers.js";
import type { RowReader } from "../row_database.js";
import { SOURCE_LABEL } from "../series_rows.js";

const MS_PER_DAY = 86_400_000;

export async function storageUse(database: RowReader): Promise<StorageUse> {
  const { days } = database;
  const tiers = TIERS.flatMap((tier) => {
    const ofTier = days.filter((day) => database.tierOf(day) === tier);
    const [first, last] = [ofTier[0], ofTier.at(-1)];
    return first === undefined || last === undefined
      ? []
      : [
          {
            tier,
            days: ofTier.length,
            bytes: ofTier.reduce((sum, day) => sum + database.bytesOf(day), 0),
            fromMs: Date.parse(first),
            toMs: Date.parse(last) + MS_PER_DAY,
          },
        ];
  });
  const rows = await database.query(
    `SELECT s.service, count(DISTINCT s.series_id) AS processes, sum(r.n)::DOUBLE AS n
      FROM ${database.rowCounts()} r JOIN series s USING (series_id) GROUP BY s.service ORDER BY n DESC, s.service`,
  );
  const all = rows.reduce((sum, { n }) => sum + Number(n), 0);
  const bytes = tiers.reduce((sum, tier) => sum + tier.bytes, 0);
  return {
    tiers,
    dictionariesBytes: database.metaBytes,
    services: rows.map(({ service, processes, n }) => ({
      service: String(service),
      processes: Number(processes),
      rows: Number(n),
      bytes: Math.round((bytes * Number(n)) / all),
    })),
  };
}

export async function streamsAbout(
  database: RowReader,
  streams: readonly string[],
): Promise<Map<string, StreamAbout>> {
  const rows = await database.query(
    `SELECT s.stream, s.service, s.version, s.host,
        list_extract(s.label_vals, list_position(s.label_keys, '${SOURCE_LABEL}')) AS source
      FROM series s WHERE s.series_id = s.root_id
        AND s.stream IN (SELECT unnest(from_json($streams, '["VARCHAR"]')))`,
    { streams: JSON.stringify(streams) },
  );
  return new Map(
    rows.map((row) => [
      String(row.stream),
      {
        service: String(row.service),
        version: String(row.version),
        host: String(row.host),
        source: row.source === null ? "" : String(row.source),
      },
    ]),
  );
}
