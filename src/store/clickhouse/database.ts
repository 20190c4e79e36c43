/**
 * ClickHouse keeps the rows; DuckDB computes the answers.
 *
 *     frames ──► resolved rows ──► INSERT samples, profiles, metrics, events ──► INSERT applied ──► INSERT streams
 *     query  ──► the rows that it needs, fetched (fetches.ts) ──► the same SQL as in the embedded store
 *
 * - A batch of a day is one INSERT into each table, after the dictionary rows that it refers to. A row's key is its content's
 *   id and time, with the frame that it came in and its number in that frame (tables.ts), which are the same whenever the
 *   stream is written. So a batch that is repeated, or that a crash cut between two inserts, replaces its own rows: reads
 *   use FINAL, and merges remove the copies. `applied` comes last: until then the stream is written from there again.
 * - Rows beyond `applied` are not rolled up (roll.ts): they come again, and then lie beside the coarser rows.
 * - Gauges: a query fetches the profiles or readings of its window, with those that may still hold in it, and DuckDB weights
 *   them by time and sums them over series. Rollups are computed in the same way and inserted into a new partition, which one
 *   row of `days` makes valid. What a crash leaves is a partition that no row names: it is dropped at the next start.
 * - FOLDER/local.duckdb is a copy of the metadata, made at each start; its lock keeps a second server away from FOLDER.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBInstance, DuckDBValue } from "@duckdb/node-api";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { badUsage } from "../../model/errors/errors.js";
import { databaseUnusable } from "../../model/errors/server_errors.js";
import { makeFolder } from "../../recording/frames/make_folder.js";
import { openInstance, resultOf, rowsOf } from "../duckdb/connection.js";
import { dayNamed } from "../duckdb/days.js";
import { KeptSums } from "../duckdb/kept/kept_sums.js";
import type {
  Day,
  DayTable,
  DayWrite,
  MetaTable,
  Need,
  OtherMeta,
  RowDatabase,
  Rows,
  RunStatement,
  SampleWeights,
  StreamEnds,
} from "../duckdb/row_database.js";
import { type AddRow, type ColumnValue, TABLES } from "../duckdb/schema.js";
import { mayBePartial, notePartial } from "../interface/partial_answers.js";
import type { Tier } from "../interface/tiers.js";
import { AppliedOffsets } from "./applied_offsets.js";
import type { ClickhouseConnection } from "./connection.js";
import { DayParts } from "./day_parts.js";
import { DayRows } from "./day_rows.js";
import { Fetches, fetchName, valuesIn } from "./fetches.js";
import { copyMetadata, LOCAL_TABLES } from "./local_copy.js";
import { prepareDatabase } from "./opening.js";
import { addMergedSeries, lateRowsStatement, RolledDay } from "./roll.js";
import { RowBinary } from "./row_binary.js";
import { columnNames, columnTypes, type Dialect } from "./tables.js";

const LONGEST_QUERY_MS: Millis = 30_000;
const TOO_LONG = `a query took longer than ${LONGEST_QUERY_MS / 1000} s`;

export class ClickhouseDatabase implements RowDatabase {
  readonly #clickhouse: ClickhouseConnection;
  readonly #instance: DuckDBInstance;
  readonly #fetches: Fetches;
  readonly #parts: DayParts;
  readonly #folder: string;
  readonly dialect: Dialect;
  readonly sums = new KeptSums();
  readonly metaWriter: DuckDBConnection;
  readonly localTables = LOCAL_TABLES;
  readonly #applied: AppliedOffsets;
  #built: RolledDay | null = null;
  #building: DuckDBConnection | null = null;
  /** Ends what is being built and swept. */
  readonly #builds: AbortController;
  /** ClickHouse, until builds end. */
  readonly clickhouse: ClickhouseConnection;
  readonly fetches: Fetches;

  private constructor(
    clickhouse: ClickhouseConnection,
    { instance, metaWriter }: { instance: DuckDBInstance; metaWriter: DuckDBConnection },
    { builds, background, fetches, parts, applied, folder, dialect }: Opened,
  ) {
    this.#clickhouse = clickhouse;
    this.#builds = builds;
    this.clickhouse = background;
    this.fetches = fetches.over(background);
    this.#instance = instance;
    this.metaWriter = metaWriter;
    this.#fetches = fetches;
    this.#parts = parts;
    this.#applied = applied;
    this.#folder = folder;
    this.dialect = dialect;
  }

  /** Throws TidemarkError if ClickHouse or the folder cannot be used. */
  static async open(clickhouse: ClickhouseConnection, folder: string): Promise<ClickhouseDatabase> {
    makeFolder(folder);
    const instance = await openInstance(join(folder, "local.duckdb"), folder);
    try {
      const metaWriter = await instance.connect();
      const dialect = await prepareDatabase(clickhouse);
      const files = join(folder, "fetched");
      rmSync(files, { recursive: true, force: true });
      mkdirSync(files, { mode: 0o700 });
      const fetches = new Fetches(clickhouse, files);
      const builds = new AbortController();
      const background = clickhouse.until(builds.signal);
      const parts = await DayParts.open(clickhouse, background);
      const applied = await AppliedOffsets.read(clickhouse);
      const opened = { builds, background, fetches, parts, applied, folder: files, dialect };
      const database = new ClickhouseDatabase(clickhouse, { instance, metaWriter }, opened);
      await copyMetadata(clickhouse, fetches, metaWriter);
      return database;
    } catch (error) {
      instance.closeSync();
      throw error;
    }
  }

  get place(): string {
    return this.#clickhouse.place;
  }

  get days(): Day[] {
    return this.#parts.days;
  }

  daysIn(startMs: TimeMs, endMs: TimeMs): Day[] {
    const [first, last] = [dayNamed(startMs), dayNamed(endMs)];
    return this.days.filter((day) => day >= first && day <= last);
  }

  tierOf(day: Day): Tier {
    return this.#parts.tierOf(day);
  }

  union(table: DayTable, days: readonly Day[], need: Need): string {
    const name = fetchName({ table, parts: this.#parts.of(days), need });
    return table === "samples"
      ? `(SELECT ${Object.keys(TABLES.samples)
          .map((column) => (column === "day" ? "NULL::DATE AS day" : column))
          .join(", ")} FROM ${name})`
      : name;
  }

  sampleSums(days: readonly Day[], need: Need, weights: SampleWeights): string {
    return fetchName({ table: "sample_sums", parts: this.#parts.of(days), need, weights });
  }

  rolledCounts(days: readonly Day[]): string {
    const rolled = days.filter((day) => this.tierOf(day) !== "raw");
    return fetchName({ table: "rolled_counts", parts: this.#parts.of(rolled) });
  }

  dictionary(table: "stacks" | "frames", ids: readonly bigint[]): string {
    return fetchName({ table, ids: ids.map(String) });
  }

  rowCounts(): string {
    return fetchName({ table: "row_counts", parts: this.#parts.of(this.days) });
  }

  query(sql: string, parameters: Record<string, DuckDBValue> = {}): Promise<Rows> {
    return this.#read(sql, parameters, rowsOf);
  }

  columns(
    sql: string,
    parameters: Record<string, DuckDBValue>,
  ): Promise<Record<string, DuckDBValue[]>> {
    return this.#read(sql, parameters, async (connection, text, values) =>
      (await resultOf(connection, text, values)).getColumnsObject(),
    );
  }

  async #read<Result>(
    sql: string,
    parameters: Record<string, DuckDBValue>,
    read: (
      connection: DuckDBConnection,
      sql: string,
      parameters: Record<string, DuckDBValue>,
    ) => Promise<Result>,
  ): Promise<Result> {
    const connection = await this.#instance.connect();
    const limit = new AbortController();
    const clickhouse = this.#clickhouse.until(limit.signal, mayBePartial() ? notePartial : null);
    const watch = setTimeout(() => {
      limit.abort(databaseUnusable(this.place, TOO_LONG, "choose a shorter time"));
      connection.interrupt();
    }, LONGEST_QUERY_MS);
    try {
      const resolved = await this.#fetches.over(clickhouse).resolved(connection, sql, parameters);
      // An interrupt between two queries has no effect.
      limit.signal.throwIfAborted();
      return await read(connection, resolved, valuesIn(resolved, parameters));
    } finally {
      clearTimeout(watch);
      connection.closeSync();
    }
  }

  async keep(table: MetaTable | OtherMeta, rows: Iterable<readonly ColumnValue[]>): Promise<void> {
    const types = columnTypes(table);
    const encoded = new RowBinary();
    for (const row of rows) {
      encoded.addRow(types, row);
    }
    if (encoded.rows > 0) {
      await this.#clickhouse.insert(table, columnNames(table), encoded.bytes);
    }
  }

  async attach(day: Day): Promise<void> {
    await this.#settle(day);
    await this.#parts.attach(day);
  }

  async #settle(day: Day): Promise<void> {
    if (this.#parts.open.includes(day)) {
      await this.#parts.settle(day);
      this.#dayChanged(day);
    }
  }

  #dayChanged(day: Day): void {
    this.sums.changed(null, Date.parse(day));
    if (this.#parts.partOf(day) === "") {
      this.#applied.forget(day);
    }
  }

  async appliedTo(day: Day): Promise<StreamEnds> {
    return this.#applied.of(day);
  }

  async writeDay(day: Day, addMeta: AddRow, { ends, fill, refer }: DayWrite): Promise<void> {
    const rows = new DayRows(this.#parts.partOf(day), addMeta);
    await fill(rows);
    await refer();
    await rows.insert(this.#clickhouse);
    const encoded = new RowBinary();
    for (const [stream, end] of ends) {
      encoded.addRow(columnTypes("applied"), [day, stream, end]);
    }
    if (encoded.rows > 0) {
      await this.#clickhouse.insert("applied", columnNames("applied"), encoded.bytes);
    }
    const applied = this.#applied.of(day);
    for (const [stream, end] of ends) {
      applied.set(stream, end);
    }
  }

  async remove(day: Day): Promise<void> {
    await this.#settle(day);
    await this.#parts.remove(day);
    this.#dayChanged(day);
    await this.#parts.dropRemoved(day);
  }

  async build(
    day: Day,
    tier: Tier,
    fill: (run: RunStatement, from: string, to: string) => Promise<void>,
  ): Promise<void> {
    const part = this.#parts.newPart(day, tier);
    try {
      await this.apart(async (connection) => {
        this.#built = await RolledDay.build({
          connection,
          clickhouse: this.clickhouse,
          fetches: this.fetches,
          folder: this.#folder,
          from: { part: this.#parts.partOf(day), tier: this.tierOf(day) },
          to: { part, tier },
          applied: this.#applied.of(day),
          fill,
          ending: this.#builds.signal,
        });
      });
    } catch (error) {
      // Otherwise the next start drops it.
      if (!this.isEnding) {
        await this.#parts.drop(part).catch(() => {}); // the first error is more informative
      }
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

  async replace(day: Day, tier: Tier): Promise<void> {
    const built = this.#built;
    if (built === null) {
      throw new Error(`nothing was built for ${day}`);
    }
    this.#built = null;
    try {
      await addMergedSeries(this);
    } catch (error) {
      await this.#parts.drop(built.part).catch(() => {}); // the first error is more informative
      throw error;
    }
    await this.#parts.replace(day, built.part, tier);
    this.#dayChanged(day);
  }

  async discard(): Promise<void> {
    const built = this.#built;
    if (built !== null) {
      this.#built = null;
      await this.#parts.drop(built.part);
    }
  }

  async writtenTo(day: Day): Promise<string> {
    return this.#applied.textOf(day);
  }

  async endLateRows(earlier: Day, day: Day): Promise<void> {
    await this.#settle(earlier);
    const [to, from] = [this.#parts.partOf(earlier), this.#parts.partOf(day)];
    await this.#clickhouse.run(lateRowsStatement(this.#clickhouse.database, to, from));
  }

  async closeRetired(): Promise<void> {
    for (const day of this.#parts.open) {
      await this.#settle(day);
    }
    await this.#parts.dropRetired();
  }

  measure(): Promise<void> {
    return this.#parts.measure();
  }

  bytesOf(day: Day): Bytes {
    return this.#parts.bytesOf(day);
  }

  get metaBytes(): Bytes {
    return this.#parts.metaBytes;
  }

  async setSwept(oldest: Day | ""): Promise<void> {
    await this.metaWriter.run("DELETE FROM swept");
    await this.metaWriter.run("INSERT INTO swept VALUES ($oldest)", { oldest });
  }

  get isEnding(): boolean {
    return this.#builds.signal.aborted;
  }

  endBuilds(): void {
    this.#builds.abort(new Error("the store is closing"));
    this.#building?.interrupt();
  }

  async copyTo(): Promise<void> {
    throw badUsage(
      "a backup of a store in ClickHouse is made by ClickHouse",
      "copy its database with ClickHouse's own tools, and the server's folder with any",
    );
  }

  close(): void {
    this.#clickhouse.close();
    this.metaWriter.closeSync();
    this.#instance.closeSync();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

interface Opened {
  readonly builds: AbortController;
  readonly background: ClickhouseConnection;
  readonly fetches: Fetches;
  readonly parts: DayParts;
  readonly applied: AppliedOffsets;
  readonly folder: string;
  readonly dialect: Dialect;
}
