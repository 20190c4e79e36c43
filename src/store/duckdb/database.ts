/**
 * The files of an embedded store:
 *
 *     FOLDER/meta.duckdb             series, frames, stacks, labels, verdicts, and how far each stream is written
 *     FOLDER/days/2026-11-25.duckdb  metrics, profiles, samples and events of one day (UTC), and `applied`: how far each
 *                                    stream's rows of that day are written
 *
 * A transaction of DuckDB writes to one file, so each day's file records what it contains.
 */
import { execFile } from "node:child_process";
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type DuckDBConnection, DuckDBInstance, type DuckDBValue } from "@duckdb/node-api";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { fileUnusable, TidemarkError, unknownVersion } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { storeInUse } from "../../model/errors/server_errors.js";
import { makeFolder } from "../../recording/frames/make_folder.js";
import { TABLES, type TableName } from "./schema.js";

/** Raised with every change to a table. */
const STORE_VERSION = 1;
const MS_PER_DAY = 86_400_000;
const LONGEST_QUERY_MS = 20_000;
const DAY_FILE = /^(\d{4}-\d\d-\d\d)\.duckdb$/;

export const DAY_TABLES = [
  "metrics",
  "profiles",
  "samples",
  "events",
] as const satisfies TableName[];
export const META_TABLES = ["series", "frames", "stacks", "labels"] as const satisfies TableName[];

const execute = promisify(execFile);

export type Rows = Record<string, DuckDBValue>[];

/** "2026-11-25" */
export type Day = string;

export function dayNamed(timeMs: TimeMs): Day {
  return new Date(Math.floor(timeMs / MS_PER_DAY) * MS_PER_DAY).toISOString().slice(0, 10);
}

/** A test of whether a time is on that day. It is much faster than naming the day of each row. */
export function isOn(day: Day): (timeMs: TimeMs) => boolean {
  const startMs = Date.parse(day);
  return (timeMs) => timeMs >= startMs && timeMs < startMs + MS_PER_DAY;
}

export class StoreDatabase {
  readonly #folder: string;
  readonly #instance: DuckDBInstance;
  readonly #days = new Set<Day>();
  /** The connection that writes days; only one write runs at a time. */
  readonly writer: DuckDBConnection;
  /** The connection that writes meta.duckdb at the same time. */
  readonly metaWriter: DuckDBConnection;

  private constructor(
    folder: string,
    instance: DuckDBInstance,
    connections: readonly [DuckDBConnection, DuckDBConnection],
  ) {
    this.#folder = folder;
    this.#instance = instance;
    [this.writer, this.metaWriter] = connections;
  }

  /** Throws TidemarkError if the folder cannot be used, another server uses it, or it has another version. */
  static async open(folder: string): Promise<StoreDatabase> {
    const path = join(folder, "meta.duckdb");
    makeFolder(join(folder, "days"));
    const instance = await openInstance(path, folder);
    try {
      const connect = () => instance.connect();
      const connections = [await connect(), await connect()] as const;
      const database = new StoreDatabase(folder, instance, connections);
      await database.#prepare();
      return database;
    } catch (error) {
      instance.closeSync();
      throw faultOf(error, path, folder);
    }
  }

  async #prepare(): Promise<void> {
    const { writer } = this;
    await writer.run("CREATE TABLE IF NOT EXISTS about (version INTEGER)");
    const [about] = await rowsOf(writer, "SELECT version FROM about");
    const version = about === undefined ? null : Number(about.version);
    if (version !== null && version !== STORE_VERSION) {
      throw unknownVersion(this.#folder, version, STORE_VERSION);
    }
    for (const table of META_TABLES) {
      await writer.run(`CREATE TABLE IF NOT EXISTS ${table} (${columnsOf(table)})`);
    }
    await writer.run(
      "CREATE TABLE IF NOT EXISTS streams (stream VARCHAR PRIMARY KEY, end_offset BIGINT)",
    );
    await writer.run(
      `CREATE TABLE IF NOT EXISTS verdicts (stream VARCHAR PRIMARY KEY, ts_ms BIGINT, kind VARCHAR, confidence DOUBLE,
        summary VARCHAR, growth DOUBLE, limit_bytes DOUBLE, ms_to_limit DOUBLE)`,
    );
    // As JSON. An older server that opens this folder does not know the table, and leaves it as it is.
    await writer.run(
      "CREATE TABLE IF NOT EXISTS verdict_holders (stream VARCHAR PRIMARY KEY, holders VARCHAR)",
    );
    if (version === null) {
      await writer.run(`INSERT INTO about VALUES (${STORE_VERSION})`);
    }
    for (const name of readdirSync(join(this.#folder, "days")).sort()) {
      const [, day] = DAY_FILE.exec(name) ?? [];
      if (day !== undefined) {
        await this.attach(day);
      }
    }
  }

  get folder(): string {
    return this.#folder;
  }

  /** Days that have a file, ascending. */
  get days(): Day[] {
    return [...this.#days].sort();
  }

  /** The days that overlap a window. */
  daysIn(startMs: TimeMs, endMs: TimeMs): Day[] {
    const [first, last] = [dayNamed(startMs), dayNamed(endMs)];
    return this.days.filter((day) => day >= first && day <= last);
  }

  /** Creates the file of a day if there is none. */
  async attach(day: Day): Promise<void> {
    if (this.#days.has(day)) {
      return;
    }
    await this.metaWriter.run(
      `ATTACH IF NOT EXISTS '${quoted(this.#fileOf(day))}' AS ${schemaOf(day)}`,
    );
    for (const table of DAY_TABLES) {
      await this.metaWriter.run(
        `CREATE TABLE IF NOT EXISTS ${schemaOf(day)}.${table} (${columnsOf(table)})`,
      );
    }
    await this.metaWriter.run(
      `CREATE TABLE IF NOT EXISTS ${schemaOf(day)}.applied (stream VARCHAR PRIMARY KEY, end_offset BIGINT)`,
    );
    this.#days.add(day);
  }

  async remove(day: Day): Promise<void> {
    this.#days.delete(day);
    await this.metaWriter.run(`DETACH ${schemaOf(day)}`);
    for (const suffix of ["", ".wal"]) {
      rmSync(`${this.#fileOf(day)}${suffix}`, { force: true });
    }
  }

  /** A table of several days as one, for a FROM clause; an empty table for no days. */
  union(table: (typeof DAY_TABLES)[number], days: readonly Day[]): string {
    if (days.length === 0) {
      const columns = Object.entries(TABLES[table]).map(
        ([name, type]) => `CAST(NULL AS ${type}) AS "${name}"`,
      );
      return `(SELECT ${columns.join(", ")} WHERE false)`;
    }
    const parts = days.map((day) => `SELECT * FROM ${schemaOf(day)}.${table}`);
    return `(${parts.join(" UNION ALL ")})`;
  }

  /** Reads, also during a write. A query that takes too long ends with an error. */
  async query(
    sql: string,
    parameters: Record<string, DuckDBValue> = {},
    longestMs: Millis = LONGEST_QUERY_MS,
  ): Promise<Rows> {
    const connection = await this.#instance.connect();
    const watch = setTimeout(() => connection.interrupt(), longestMs);
    try {
      return await rowsOf(connection, sql, parameters);
    } finally {
      clearTimeout(watch);
      connection.closeSync();
    }
  }

  bytesOf(day: Day): Bytes {
    return sizeOf(this.#fileOf(day)) + sizeOf(`${this.#fileOf(day)}.wal`);
  }

  get metaBytes(): Bytes {
    const path = join(this.#folder, "meta.duckdb");
    return sizeOf(path) + sizeOf(`${path}.wal`);
  }

  /** Copies all files; nothing may be written meanwhile. A process of its own copies them: a file's lock ends when any
   * descriptor of its process is closed. Throws TidemarkError. */
  async copyTo(folder: string): Promise<void> {
    makeFolder(join(folder, "days"));
    await this.writer.run("CHECKPOINT");
    await copied(join(this.#folder, "meta.duckdb"), folder);
    for (const day of this.days) {
      await this.writer.run(`CHECKPOINT ${schemaOf(day)}`);
      await copied(this.#fileOf(day), join(folder, "days"));
    }
  }

  close(): void {
    for (const connection of [this.writer, this.metaWriter]) {
      connection.closeSync();
    }
    this.#instance.closeSync();
  }

  #fileOf(day: Day): string {
    return join(this.#folder, "days", `${day}.duckdb`);
  }
}

async function openInstance(path: string, folder: string): Promise<DuckDBInstance> {
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

/** A server that ends frees the files of its days last. */
function faultOf(error: unknown, path: string, folder: string): TidemarkError {
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
  const reader = await connection.runAndReadAll(sql, parameters);
  return reader.getRowObjects() as Rows;
}

/** Name under which the file of a day is attached. */
export function schemaOf(day: Day): string {
  return `day_${day.replaceAll("-", "_")}`;
}

function columnsOf(table: TableName): string {
  return Object.entries(TABLES[table])
    .map(([name, type]) => `"${name}" ${type}`)
    .join(", ");
}

function quoted(text: string): string {
  return text.replaceAll("'", "''");
}

/** Removes the file and its log, if there is one. */
async function copied(path: string, folder: string): Promise<void> {
  const log = sizeOf(`${path}.wal`) > 0 ? [`${path}.wal`] : [];
  try {
    await execute("cp", ["--", path, ...log, folder]);
  } catch (error) {
    const { code, message } = reasonOf(error);
    const why = message.trim().split("\n").at(-1) ?? message;
    throw fileUnusable(folder, "write", code === "ENOENT" ? "there is no program `cp`" : why);
  }
}

function sizeOf(path: string): Bytes {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
