/** Creates the tables of a store's files. */
import type { DuckDBConnection } from "@duckdb/node-api";
import type { Tier } from "../interface/tiers.js";
import { DAY_TABLES } from "./row_database.js";
import { TABLES, type TableName } from "./schema.js";

/** Tables of a day of a coarser tier. `carry_ms`: how long a row holds. `instances`: those that a merged profile is the sum
 * of, a mean over its bucket. */
const ROLLED: Readonly<Record<string, string>> = {
  rolled_metrics:
    "series_id UBIGINT, ts_ms BIGINT, name VARCHAR, value DOUBLE, carry_ms BIGINT, most DOUBLE",
  rolled_counts: "series_id UBIGINT, ts_ms BIGINT, instances DOUBLE",
  rolled_series: columnsOf("series"),
};

/** `tables`: those of {@link META_TABLES} to create. */
export async function createMetaTables(
  connection: DuckDBConnection,
  tables: readonly TableName[],
): Promise<void> {
  for (const table of tables) {
    await connection.run(`CREATE TABLE IF NOT EXISTS ${table} (${columnsOf(table)})`);
  }
  await connection.run(
    "CREATE TABLE IF NOT EXISTS streams (stream VARCHAR PRIMARY KEY, end_offset BIGINT)",
  );
  await connection.run(
    `CREATE TABLE IF NOT EXISTS verdicts (stream VARCHAR PRIMARY KEY, ts_ms BIGINT, kind VARCHAR, confidence DOUBLE,
      summary VARCHAR, growth DOUBLE, limit_bytes DOUBLE, ms_to_limit DOUBLE)`,
  );
  // As JSON. An older server that opens this folder does not know the table, and leaves it as it is.
  await connection.run(
    "CREATE TABLE IF NOT EXISTS verdict_holders (stream VARCHAR PRIMARY KEY, holders VARCHAR)",
  );
  // The oldest day when unused rows were last removed.
  await connection.run("CREATE TABLE IF NOT EXISTS swept (day VARCHAR)");
}

export async function createDay(
  connection: DuckDBConnection,
  schema: string,
  tier: Tier,
): Promise<void> {
  for (const [table, columns] of tablesOf(tier)) {
    await connection.run(`CREATE TABLE IF NOT EXISTS ${schema}.${table} (${columns})`);
  }
}

/** Names and columns of a day's tables. */
export function tablesOf(tier: Tier): (readonly [string, string])[] {
  return [
    ...DAY_TABLES.map((table) => [table, columnsOf(table)] as const),
    ...(tier === "raw" ? [] : Object.entries(ROLLED)),
    ["applied", "stream VARCHAR PRIMARY KEY, end_offset BIGINT"],
  ];
}

function columnsOf(table: TableName): string {
  return Object.entries(TABLES[table])
    .map(([name, type]) => `"${name}" ${type}`)
    .join(", ");
}
