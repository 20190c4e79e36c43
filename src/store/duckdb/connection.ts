/** Opens databases of DuckDB, and runs statements. */
import {
  BIGINT,
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBResult,
  type DuckDBValue,
  UBIGINT,
} from "@duckdb/node-api";
import { fileUnusable, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { storeInUse } from "../../model/errors/server_errors.js";
import type { Rows } from "./row_database.js";

const MOST_BIGINT = 2n ** 63n - 1n;

export async function openInstance(path: string, folder: string): Promise<DuckDBInstance> {
  try {
    // Never use the network: extensions that are not built in are not needed.
    return await DuckDBInstance.create(path, {
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
      memory_limit: "512MB",
      threads: "2",
    });
  } catch (error) {
    throw faultOf(error, path, folder);
  }
}

/** What opening a database failed with, as an error of the store: another server has it, or the file cannot be used. */
export function faultOf(error: unknown, path: string, folder: string): TidemarkError {
  if (error instanceof TidemarkError) {
    return error;
  }
  const { message } = reasonOf(error);
  const [, pid] = /Conflicting lock is held in .*\(PID (\d+)\)/.exec(message) ?? [];
  return /set lock on file|Conflicting lock/.test(message)
    ? storeInUse(folder, pid ?? "")
    : fileUnusable(path, "write", message);
}

export async function rowsOf(
  connection: DuckDBConnection,
  sql: string,
  parameters: Record<string, DuckDBValue> = {},
): Promise<Rows> {
  const all: Rows[] = [];
  // Between two chunks of 2,048 rows, other work goes on.
  for await (const rows of (await resultOf(connection, sql, parameters)).yieldRowObjects()) {
    all.push(rows);
  }
  return all.flat();
}

/**
 * A statement's result. The DuckDB client binds each bigint as a HUGEINT, with which arithmetic, and a division most of
 * all, takes several times as long as with the columns' own types.
 */
export function resultOf(
  connection: DuckDBConnection,
  sql: string,
  parameters: Record<string, DuckDBValue>,
): Promise<DuckDBResult> {
  const bigints = Object.entries(parameters).filter(([, value]) => typeof value === "bigint");
  const types = bigints.map(([name, value]) => [
    name,
    (value as bigint) > MOST_BIGINT ? UBIGINT : BIGINT,
  ]);
  return connection.run(sql, parameters, Object.fromEntries(types));
}
