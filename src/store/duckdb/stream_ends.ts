/**
 * How far streams are written: tables with the columns `stream` and `end_offset`. One statement reads or writes all streams
 * of a write, because a statement for each took longer than their rows.
 */
import type { DuckDBConnection } from "@duckdb/node-api";
import { rowsOf } from "./connection.js";
import type { StreamEnds } from "./row_database.js";

const NAMES = `unnest(from_json($streams, '["VARCHAR"]'))`;

/** 0 for streams that are not in the table. */
export async function readEnds(
  connection: DuckDBConnection,
  table: string,
  streams: readonly string[],
): Promise<StreamEnds> {
  const rows = await rowsOf(
    connection,
    `SELECT stream, end_offset FROM ${table} WHERE stream IN (SELECT ${NAMES})`,
    { streams: JSON.stringify(streams) },
  );
  const known = new Map(rows.map(({ stream, end_offset: end }) => [String(stream), Number(end)]));
  return new Map(streams.map((stream) => [stream, known.get(stream) ?? 0]));
}

export async function writeEnds(
  connection: DuckDBConnection,
  table: string,
  ends: StreamEnds,
): Promise<void> {
  if (ends.size > 0) {
    await connection.run(
      `INSERT OR REPLACE INTO ${table} SELECT ${NAMES}, unnest(from_json($ends, '["BIGINT"]'))`,
      { streams: JSON.stringify([...ends.keys()]), ends: JSON.stringify([...ends.values()]) },
    );
  }
}
