/** The copy of the metadata in a file of DuckDB, made at each start. */
import type { DuckDBConnection } from "@duckdb/node-api";
import { createMetaTables } from "../duckdb/created_tables.js";
import type { MetaTable } from "../duckdb/row_database.js";
import type { ClickhouseConnection } from "./connection.js";
import type { Fetches } from "./fetches.js";
import { CLICKHOUSE_TABLES, columnNames } from "./tables.js";

export const LOCAL_TABLES = ["series", "labels"] as const satisfies MetaTable[];
/** Tables of metadata that are copied at a start, besides {@link LOCAL_TABLES}. */
const COPIED = ["streams", "verdicts", "verdict_holders", "label_values"] as const;
const DUCKDB_TYPES: Readonly<Record<string, string>> = {
  UInt64: "UBIGINT",
  Int64: "BIGINT",
  Int32: "INTEGER",
  Float64: "DOUBLE",
  String: "VARCHAR",
  "Array(String)": "VARCHAR[]",
};

/** Replaces what `connection`'s database has. Queries join these tables with fetched rows. */
export async function copyMetadata(
  clickhouse: ClickhouseConnection,
  fetches: Fetches,
  connection: DuckDBConnection,
): Promise<void> {
  const known = [...LOCAL_TABLES, ...COPIED];
  for (const table of [...known, "swept"]) {
    await connection.run(`DROP TABLE IF EXISTS ${table}`);
  }
  await createMetaTables(connection, LOCAL_TABLES);
  await connection.run(
    `CREATE TABLE label_values (service VARCHAR, label VARCHAR, value VARCHAR,
        PRIMARY KEY (service, label, value))`,
  );
  for (const table of known) {
    const columns = Object.fromEntries(
      Object.entries(CLICKHOUSE_TABLES[table].columns).map(([name, type]) => [
        name,
        DUCKDB_TYPES[type] ?? type,
      ]),
    );
    const names = columnNames(table).join(", ");
    const sql = `SELECT ${names} FROM ${clickhouse.database}.${table} FINAL`;
    await fetches.saved({ sql, beside: {} }, columns, (rows) =>
      connection.run(`INSERT INTO ${table} (${names}) SELECT ${names} FROM ${rows}`),
    );
  }
}
