/** A recording as a DuckDB database, or as a folder of Parquet files, in the store's own tables. */
import { join } from "node:path";
import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBInstance,
  LIST,
  UBIGINT,
  VARCHAR,
} from "@duckdb/node-api";
import { fileUnusable, TidemarkError } from "../../model/errors.js";
import type { Recording, Tell } from "../../record/index.js";
import { addRecording } from "./recording_rows.js";
import { type AddRow, type ColumnValue, TABLE_NAMES, TABLES, type TableName } from "./schema.js";

/** Fills a new database file. Throws TidemarkError. */
export async function writeDuckdb(recording: Recording, path: string, tell: Tell): Promise<void> {
  await sayingWhere(path, () =>
    withDatabase(path, async (connection) => {
      await fill(connection, recording, tell);
      await connection.run("CHECKPOINT");
    }),
  );
}

/** Writes TABLE.parquet for each table into a folder that is there. Throws TidemarkError.
 * @returns their names */
export async function writeParquet(
  recording: Recording,
  folder: string,
  tell: Tell,
): Promise<string[]> {
  const files: string[] = [];
  await sayingWhere(folder, () =>
    withDatabase(":memory:", async (connection) => {
      await fill(connection, recording, tell);
      for (const table of TABLE_NAMES) {
        const file = `${table}.parquet`;
        const quoted = join(folder, file).replaceAll("'", "''");
        await connection.run(`COPY ${table} TO '${quoted}' (FORMAT parquet, COMPRESSION zstd)`);
        files.push(file);
      }
    }),
  );
  return files;
}

async function sayingWhere(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    throw error instanceof TidemarkError
      ? error
      : fileUnusable(path, "write", (error as Error).message);
  }
}

async function withDatabase(
  path: string,
  use: (connection: DuckDBConnection) => Promise<void>,
): Promise<void> {
  // No word to the network: what is not built in is not needed.
  const instance = await DuckDBInstance.create(path, {
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
  });
  try {
    const connection = await instance.connect();
    try {
      await use(connection);
    } finally {
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}

async function fill(connection: DuckDBConnection, recording: Recording, tell: Tell): Promise<void> {
  const appenders = new Map<TableName, DuckDBAppender>();
  for (const table of TABLE_NAMES) {
    const columns = Object.entries(TABLES[table]).map(([name, type]) => `"${name}" ${type}`);
    await connection.run(`CREATE TABLE ${table} (${columns.join(", ")})`);
    appenders.set(table, await connection.createAppender(table));
  }
  const add: AddRow = (table, ...values) => {
    const appender = appenders.get(table) as DuckDBAppender;
    const types = Object.values(TABLES[table]);
    for (const [index, value] of values.entries()) {
      append(appender, types[index] ?? "", value);
    }
    appender.endRow();
  };
  await addRecording(recording, add, tell);
  for (const appender of appenders.values()) {
    appender.closeSync();
  }
}

const MS_PER_DAY = 86_400_000;

function append(appender: DuckDBAppender, type: string, value: ColumnValue): void {
  switch (type) {
    case "UBIGINT":
      appender.appendUBigInt(BigInt(value as bigint));
      break;
    case "BIGINT":
      appender.appendBigInt(BigInt(value as number));
      break;
    case "INTEGER":
      appender.appendInteger(value as number);
      break;
    case "DOUBLE":
      appender.appendDouble(value as number);
      break;
    case "DATE":
      appender.appendDate(new DuckDBDateValue(Date.parse(value as string) / MS_PER_DAY));
      break;
    case "VARCHAR[]":
      appender.appendList(value as string[], LIST(VARCHAR));
      break;
    case "UBIGINT[]":
      appender.appendList(value as bigint[], LIST(UBIGINT));
      break;
    default:
      appender.appendVarchar(value as string);
  }
}
