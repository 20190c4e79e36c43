/** A recording as a DuckDB database, or as a folder of Parquet files, in the store's own tables. */

import { join } from "node:path";
import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunkWriter,
  DuckDBInstance,
} from "@duckdb/node-api";
import type { OnProgress } from "../../model/base/units.js";
import { fileUnusable, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Recording } from "../../recording/types.js";
import { addRecording } from "./recording_rows.js";
import { SampleChunks } from "./sample_chunks.js";
import { type AddRow, TABLE_NAMES, TABLES, type TableName, WRITER_MARK } from "./schema.js";
import { storedValue } from "./stored_value.js";
import { unknownColumns } from "./unknown_columns.js";

/** Fills a new database file. Throws TidemarkError. */
export async function writeDuckdb(
  recording: Recording,
  path: string,
  onProgress: OnProgress,
): Promise<void> {
  await sayingWhere(path, () =>
    withDatabase(path, async (connection) => {
      await fill(connection, recording, onProgress);
      await connection.run(`COMMENT ON TABLE profiles IS '${WRITER_MARK}'`);
      await connection.run("CHECKPOINT");
    }),
  );
}

/** Writes TABLE.parquet for each table into an existing folder. Throws TidemarkError.
 * @returns their names */
export async function writeParquet(
  recording: Recording,
  folder: string,
  onProgress: OnProgress,
): Promise<string[]> {
  const files: string[] = [];
  await sayingWhere(folder, () =>
    withDatabase(":memory:", async (connection) => {
      await fill(connection, recording, onProgress);
      for (const table of TABLE_NAMES) {
        const file = `${table}.parquet`;
        const quoted = join(folder, file).replaceAll("'", "''");
        await connection.run(
          `COPY ${table} TO '${quoted}' (FORMAT parquet, COMPRESSION zstd, KV_METADATA {writer: '${WRITER_MARK}'})`,
        );
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
      : fileUnusable(path, "write", reasonOf(error).message);
  }
}

async function withDatabase(
  path: string,
  use: (connection: DuckDBConnection) => Promise<void>,
): Promise<void> {
  // Never use the network: extensions that are not built in are not needed.
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

interface OpenTable {
  readonly appender: DuckDBAppender;
  readonly writer: DuckDBDataChunkWriter;
}

async function fill(
  connection: DuckDBConnection,
  recording: Recording,
  onProgress: OnProgress,
): Promise<void> {
  const tables = new Map<TableName, OpenTable>();
  for (const table of TABLE_NAMES) {
    const columns = Object.entries(TABLES[table]).map(([name, type]) => `"${name}" ${type}`);
    await connection.run(`CREATE TABLE ${table} (${columns.join(", ")})`);
    const appender = await connection.createAppender(table);
    tables.set(table, { appender, writer: DuckDBDataChunkWriter.forAppender(appender) });
  }
  const open = (table: TableName): OpenTable => {
    const found = tables.get(table);
    if (found === undefined) {
      throw new Error(`the schema has no table ${table}`);
    }
    return found;
  };
  const add: AddRow = (table, ...values) => {
    const types = Object.values(TABLES[table]);
    open(table).writer.appendRow(
      values.map((value, index) => storedValue(value, types[index] ?? "")),
    );
  };
  const chunks = new SampleChunks(open("samples").appender);
  await addRecording(recording, add, chunks, onProgress);
  chunks.flush();
  for (const { appender, writer } of tables.values()) {
    writer.flush();
    appender.closeSync();
  }
  for (const [table, columns] of unknownColumns(recording.meta.imported)) {
    const nulls = columns.map((column) => `${column} = NULL`).join(", ");
    await connection.run(`UPDATE ${table} SET ${nulls}`);
  }
}
