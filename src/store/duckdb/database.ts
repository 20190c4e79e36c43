/**
 * The files of an embedded store:
 *
 *     FOLDER/meta.duckdb             series, frames, stacks, labels, verdicts, and how far each stream is written
 *     FOLDER/days/2026-11-25.duckdb  metrics, profiles, samples and events of one day (UTC), and `applied`: how far each
 *                                    stream's rows of that day are written
 *     FOLDER/days/2026-10-25.1h.duckdb  a day of a coarser tier (interface/tiers.ts): the same tables, and those of ROLLED
 *
 * A transaction of DuckDB writes to one file, so each day's file records what it contains. A day's file of a coarser tier
 * is complete once it has its name; then the finer one is removed.
 */
import { renameSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBInstance, DuckDBValue } from "@duckdb/node-api";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { unknownVersion } from "../../model/errors/errors.js";
import { makeFolder } from "../../recording/frames/make_folder.js";
import type { Tier } from "../interface/tiers.js";
import { faultOf, openInstance, resultOf, rowsOf } from "./connection.js";
import { createDay, createMetaTables } from "./created_tables.js";
import { copied, removeFile, sizeOf, syncFile } from "./database_files.js";
import { DayFiles, quoted, schemaNamed } from "./day_files.js";
import { DayWriter } from "./day_writer.js";
import { KeptSums } from "./kept/kept_sums.js";
import {
  type Day,
  type DayTable,
  type DayWrite,
  META_TABLES,
  type RowDatabase,
  type Rows,
  type RunStatement,
  type StreamEnds,
} from "./row_database.js";
import { type AddRow, TABLES } from "./schema.js";
import { readEnds, writeEnds } from "./stream_ends.js";

/** Raised with every change to a table. */
const STORE_VERSION = 2;
/** It has no coarser tiers; its files are used as they are. */
const OLDEST_VERSION = 1;
const LONGEST_QUERY_MS = 20_000;

export class StoreDatabase implements RowDatabase {
  readonly #folder: string;
  readonly #instance: DuckDBInstance;
  readonly #files: DayFiles;
  #building: DuckDBConnection | null = null;
  #isEnding = false;
  readonly sums = new KeptSums();
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
    this.#files = new DayFiles(folder, this.metaWriter);
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
    if (version !== null && (version < OLDEST_VERSION || version > STORE_VERSION)) {
      throw unknownVersion(this.#folder, version, STORE_VERSION);
    }
    await createMetaTables(writer, META_TABLES);
    if (version === null) {
      await writer.run(`INSERT INTO about VALUES (${STORE_VERSION})`);
    } else if (version < STORE_VERSION) {
      await writer.run(`UPDATE about SET version = ${STORE_VERSION}`);
    }
    await this.#files.attachFound();
  }

  get place(): string {
    return this.#folder;
  }

  get localTables() {
    return META_TABLES;
  }

  /** The tables of meta.duckdb are the store's own. */
  async keep(): Promise<void> {}

  /** Sizes are read when they are asked for. */
  async measure(): Promise<void> {}

  /** Days that have a file. */
  get days(): Day[] {
    return this.#files.days;
  }

  /** The day must have a file. */
  tierOf(day: Day): Tier {
    return this.#files.tierOf(day);
  }

  /** Name under which the file of a day is attached. */
  schemaOf(day: Day): string {
    return this.#files.schemaOf(day);
  }

  /** The days that overlap a window. */
  daysIn(startMs: TimeMs, endMs: TimeMs): Day[] {
    return this.#files.daysIn(startMs, endMs);
  }

  /** Creates the file of a day if there is none. */
  async attach(day: Day): Promise<void> {
    if (!this.#files.has(day)) {
      await this.#files.attach(day, "raw");
    }
  }

  async remove(day: Day): Promise<void> {
    const [schema, file] = [this.schemaOf(day), this.#files.fileOf(day, this.tierOf(day))];
    this.#files.forget(day);
    this.sums.changed(null, Date.parse(day));
    await this.metaWriter.run(`DETACH ${schema}`);
    await this.#files.closeRetired((name) => name.startsWith(schemaNamed(day, "raw")));
    removeFile(file);
  }

  /**
   * Fills a new file of a coarser tier by `fill`, which gets a connection and the new file's schema, next to all that
   * happens meanwhile. {@link replace} puts it in place. Throws if the disk is full.
   */
  async build(
    day: Day,
    tier: Tier,
    fill: (run: RunStatement, from: string, to: string) => Promise<void>,
  ): Promise<void> {
    const path = this.#files.unfinishedOf(day, tier);
    const schema = `${schemaNamed(day, tier)}_new`;
    removeFile(path);
    try {
      await this.apart(async (connection) => {
        await connection.run(`ATTACH '${quoted(path)}' AS ${schema}`);
        try {
          await createDay(connection, schema, tier);
          if (this.#isEnding) {
            throw new Error("the store is closing");
          }
          await fill((sql) => connection.run(sql), this.schemaOf(day), schema);
          await connection.run(`CHECKPOINT ${schema}`);
        } finally {
          await connection.run(`DETACH ${schema}`);
        }
      });
    } catch (error) {
      removeFile(path);
      throw error;
    }
  }

  async apart<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
    const connection = await this.#instance.connect();
    this.#building = connection;
    try {
      return await work(connection);
    } finally {
      this.#building = null;
      connection.closeSync();
    }
  }

  async setSwept(oldest: Day | ""): Promise<void> {
    await this.metaWriter.run("DELETE FROM swept");
    await this.metaWriter.run("INSERT INTO swept VALUES ($oldest)", { oldest });
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Interrupts what is being built, now and later. */
  endBuilds(): void {
    this.#isEnding = true;
    this.#building?.interrupt();
  }

  /** Puts a built file in place of the day's own; nothing may be written to the day meanwhile. After an error, the day
   * has only its own file: rows that arrive later go there. */
  async replace(day: Day, tier: Tier): Promise<void> {
    const before = { schema: this.schemaOf(day), file: this.#files.fileOf(day, this.tierOf(day)) };
    const path = this.#files.unfinishedOf(day, tier);
    const file = this.#files.fileOf(day, tier);
    try {
      syncFile(path);
      renameSync(path, file);
      syncFile(join(this.#folder, "days"));
      await this.#files.attach(day, tier);
    } catch (error) {
      await this.metaWriter
        .run(`DETACH DATABASE IF EXISTS ${schemaNamed(day, tier)}`)
        .catch(() => {}); // the first error is more informative
      removeFile(path);
      removeFile(file);
      throw error;
    }
    this.sums.changed(null, Date.parse(day));
    this.#files.retire(before.schema);
    removeFile(before.file);
  }

  async discard(day: Day, tier: Tier): Promise<void> {
    removeFile(this.#files.unfinishedOf(day, tier));
  }

  /** Closes files that were replaced long enough ago that no query reads them. */
  closeRetired(): Promise<void> {
    return this.#files.closeRetired();
  }

  union(table: DayTable, days: readonly Day[]): string {
    const more = table === "metrics" ? ", 0::BIGINT AS carry_ms, value AS most" : "";
    if (days.length === 0) {
      const columns = Object.entries(TABLES[table]).map(
        ([name, type]) => `CAST(NULL AS ${type}) AS "${name}"`,
      );
      return `(SELECT *${more} FROM (SELECT ${columns.join(", ")}) WHERE false)`;
    }
    const parts = days.flatMap((day) => [
      `SELECT *${more} FROM ${this.schemaOf(day)}.${table}`,
      ...(table === "metrics" && this.tierOf(day) !== "raw"
        ? [
            `SELECT series_id, ts_ms, name, value, carry_ms, most FROM ${this.schemaOf(day)}.rolled_metrics`,
          ]
        : []),
    ]);
    return `(${parts.join(" UNION ALL ")})`;
  }

  rolledCounts(days: readonly Day[]): string {
    const parts = days
      .filter((day) => this.tierOf(day) !== "raw")
      .map((day) => `SELECT * FROM ${this.schemaOf(day)}.rolled_counts`);
    return parts.length === 0
      ? "(SELECT 0::UBIGINT AS series_id, 0::BIGINT AS ts_ms, 0::DOUBLE AS instances WHERE false)"
      : `(${parts.join(" UNION ALL ")})`;
  }

  dictionary(table: "stacks" | "frames", ids: readonly bigint[]): string {
    // The ids are numbers from the database.
    const id = table === "stacks" ? "stack_id" : "frame_id";
    return `(SELECT * FROM ${table} JOIN (SELECT unnest([${ids.join(", ")}]::UBIGINT[]) AS ${id}) USING (${id}))`;
  }

  rowCounts(): string {
    return `(
      SELECT series_id, count(*) AS n FROM ${this.union("samples", this.days)} GROUP BY series_id
      UNION ALL SELECT series_id, count(*) FROM ${this.union("metrics", this.days)} GROUP BY series_id)`;
  }

  async query(
    sql: string,
    parameters: Record<string, DuckDBValue> = {},
    longestMs: Millis = LONGEST_QUERY_MS,
  ): Promise<Rows> {
    return this.#read(longestMs, (connection) => rowsOf(connection, sql, parameters));
  }

  async #read<Result>(
    longestMs: Millis,
    read: (connection: DuckDBConnection) => Promise<Result>,
  ): Promise<Result> {
    const connection = await this.#instance.connect();
    const watch = setTimeout(() => connection.interrupt(), longestMs);
    try {
      return await read(connection);
    } finally {
      clearTimeout(watch);
      connection.closeSync();
    }
  }

  async columns(
    sql: string,
    parameters: Record<string, DuckDBValue>,
  ): Promise<Record<string, DuckDBValue[]>> {
    return this.#read(LONGEST_QUERY_MS, async (connection) =>
      (await resultOf(connection, sql, parameters)).getColumnsObject(),
    );
  }

  bytesOf(day: Day): Bytes {
    const path = this.#files.fileOf(day, this.tierOf(day));
    return sizeOf(path) + sizeOf(`${path}.wal`);
  }

  get metaBytes(): Bytes {
    const path = join(this.#folder, "meta.duckdb");
    return sizeOf(path) + sizeOf(`${path}.wal`);
  }

  async appliedTo(day: Day, streams: readonly string[]): Promise<StreamEnds> {
    return readEnds(this.writer, `${this.schemaOf(day)}.applied`, streams);
  }

  /** In one transaction with each stream's offset. */
  async writeDay(day: Day, addMeta: AddRow, { ends, fill, refer }: DayWrite): Promise<void> {
    const { writer } = this;
    await writer.run("BEGIN");
    try {
      const schema = this.schemaOf(day);
      const sink = await DayWriter.open(writer, schema, addMeta);
      await fill(sink);
      sink.close();
      await writeEnds(writer, `${schema}.applied`, ends);
      await refer();
      await writer.run("COMMIT");
    } catch (error) {
      await writer.run("ROLLBACK").catch(() => {}); // the first error is more informative
      throw error;
    }
  }

  async writtenTo(day: Day): Promise<string> {
    const [row] = await rowsOf(
      this.writer,
      `SELECT count(*) AS streams, sum(end_offset) AS offsets FROM ${this.schemaOf(day)}.applied`,
    );
    return `${row?.streams} ${row?.offsets}`;
  }

  async endLateRows(earlier: Day, day: Day): Promise<void> {
    await this.writer.run(
      `UPDATE ${this.schemaOf(earlier)}.profiles p SET carry_ms = greatest(0, n.ts_ms - p.ts_ms)
        FROM (SELECT series_id, min(ts_ms) AS ts_ms FROM ${this.schemaOf(day)}.profiles GROUP BY series_id) n
        WHERE p.series_id = n.series_id AND p.ts_ms + p.carry_ms > n.ts_ms`,
    );
  }

  /** Copies all files; nothing may be written meanwhile. A process of its own copies them: a file's lock ends when any
   * descriptor of its process is closed. Throws TidemarkError. */
  async copyTo(folder: string): Promise<void> {
    makeFolder(join(folder, "days"));
    await this.writer.run("CHECKPOINT");
    await copied(join(this.#folder, "meta.duckdb"), folder);
    for (const day of this.days) {
      await this.writer.run(`CHECKPOINT ${this.schemaOf(day)}`);
      await copied(this.#files.fileOf(day, this.tierOf(day)), join(folder, "days"));
    }
  }

  close(): void {
    for (const connection of [this.writer, this.metaWriter]) {
      connection.closeSync();
    }
    this.#instance.closeSync();
  }
}
