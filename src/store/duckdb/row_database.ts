/**
 * Rows of days, and rows of no day (metadata), that queries of DuckDB read, whatever database keeps them: files of DuckDB
 * (database.ts), or ClickHouse (../clickhouse/). All else about a store is computed from them in the same way.
 */
import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { Tier } from "../interface/tiers.js";
import type { Day } from "./days.js";
import type { KeptSums } from "./kept/kept_sums.js";
import type { ColumnValue, TableName } from "./schema.js";
import type { RowSink } from "./stream_rows.js";

export type Rows = Record<string, DuckDBValue>[];

export type { Day };

export const DAY_TABLES = [
  "metrics",
  "profiles",
  "samples",
  "events",
] as const satisfies TableName[];
export type DayTable = (typeof DAY_TABLES)[number];

export const META_TABLES = ["series", "frames", "stacks", "labels"] as const satisfies TableName[];
export type MetaTable = (typeof META_TABLES)[number];

/** The rows of a table that a query reads at most: others need not be fetched from another computer. */
export interface Need {
  /** `ts_ms` is not before it. */
  readonly fromMs?: TimeMs;
  /** `ts_ms` is before it. */
  readonly beforeMs?: TimeMs;
  /** A condition on their series `s`, with parameters of the query. */
  readonly of?: string;
  /** Names of metrics; a last `%` stands for any continuation. */
  readonly names?: readonly string[];
  /** Of metrics and profiles: `ts_ms + carry_ms` is not before it. */
  readonly validFromMs?: TimeMs;
  /** Of metrics: the newest row of each series and name is enough, with the largest `most` of all of them. Raw rows and those
   * of coarser tiers count separately. Steps: those of each step, the first of which includes all earlier rows. */
  readonly newest?: true | { readonly startMs: TimeMs; readonly stepMs: Millis };
  /** Only the time of the first row of each series is needed, and of metrics, of each series and name. */
  readonly first?: boolean;
}

/** How much each profile's samples count. */
export interface SampleWeights {
  /** A query with the columns step, samples_id, ms (for live figures) and counts (for allocated ones). */
  readonly sql: string;
  /** Classes of age that count, from the first to the last; undefined: all. */
  readonly ages: readonly [number, number] | undefined;
}

/** What queries read. */
export interface RowReader {
  /** Ascending. */
  readonly days: readonly Day[];
  /** Every change of profiles and samples must be reported to it. */
  readonly sums: KeptSums;
  /** The days that overlap a window. */
  daysIn(startMs: TimeMs, endMs: TimeMs): Day[];
  tierOf(day: Day): Tier;
  /**
   * A table of several days as one, for the FROM clause of {@link query}; an empty table for no days. Metrics have two more
   * columns: `carry_ms`, how long a reading of a coarser tier holds (0: a raw one), and `most`, the largest reading that it
   * stands for.
   */
  union(table: DayTable, days: readonly Day[], need: Need): string;
  /** How many instances the merged profiles of these days are sums of: columns series_id, ts_ms, instances. */
  rolledCounts(days: readonly Day[]): string;
  /**
   * Samples of several days, weighted and summed by stack, if the database itself can do it: columns step, stack_id, domain,
   * label_id and {@link SUMMED}; for a FROM clause. Without it, the query sums the rows of {@link union}.
   */
  sampleSums?(days: readonly Day[], need: Need, weights: SampleWeights): string;
  /** Rows of a dictionary with these ids, for a FROM clause. */
  dictionary(table: "stacks" | "frames", ids: readonly bigint[]): string;
  /** Reads, also during a write. A query that takes too long ends with an error. */
  query(sql: string, parameters?: Record<string, DuckDBValue>): Promise<Rows>;
  /** As {@link query}, by column. */
  columns(
    sql: string,
    parameters: Record<string, DuckDBValue>,
  ): Promise<Record<string, DuckDBValue[]>>;
  bytesOf(day: Day): Bytes;
  readonly metaBytes: Bytes;
  /** For each series with samples or metrics: series_id, n (rows); for a FROM clause. */
  rowCounts(): string;
}

/** A day's rows, as a stream's frames make them. */
export interface DaySink extends RowSink {
  /** Names the frame that the next rows are of: they are the same whenever it is written. */
  begin(stream: string, endOffset: number): void;
}

/** How far each stream is written. */
export type StreamEnds = ReadonlyMap<string, number>;

export interface DayWrite {
  /** After this write. */
  readonly ends: StreamEnds;
  /** Adds the rows. */
  readonly fill: (sink: DaySink) => Promise<void>;
  /** Stores what they refer to, which must be there before them. */
  readonly refer: () => Promise<void>;
}

/** A table of metadata that is not a dictionary. */
export type OtherMeta = "streams" | "verdicts" | "verdict_holders" | "label_values";

export type RunStatement = (sql: string) => Promise<unknown>;

/** What a store writes, too. Only one write runs at a time. */
export interface RowDatabase extends RowReader {
  /** For messages. */
  readonly place: string;
  readonly isEnding: boolean;
  /** Reads and writes tables of metadata: series, labels, streams, verdicts, label_values and others. */
  readonly metaWriter: DuckDBConnection;
  /** Tables of {@link META_TABLES} that {@link metaWriter} has. */
  readonly localTables: readonly MetaTable[];
  /** Stores rows durably that are then written by {@link metaWriter}, if its tables are only a copy. */
  keep(table: MetaTable | OtherMeta, rows: Iterable<readonly ColumnValue[]>): Promise<void>;
  /** Makes a day known if it is not. */
  attach(day: Day): Promise<void>;
  /** How far streams are written, as to their rows of a day. */
  appliedTo(day: Day, streams: readonly string[]): Promise<StreamEnds>;
  /** Writes rows of a day, so that a write that is cut short and repeated neither loses nor doubles any. */
  writeDay(day: Day, addMeta: RowSink["add"], write: DayWrite): Promise<void>;
  remove(day: Day): Promise<void>;
  /** Long work on a connection of its own, next to all that happens meanwhile; {@link endBuilds} interrupts it. Only one
   * such work runs at a time. */
  apart<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result>;
  /** Makes the rows of a coarser tier, next to all that happens meanwhile, by `fill`, which runs statements with
   * the schemas of the day and of the new rows. {@link replace} puts them in place. */
  build(
    day: Day,
    tier: Tier,
    fill: (run: RunStatement, from: string, to: string) => Promise<void>,
  ): Promise<void>;
  /** Puts built rows in place of the day's own; nothing may be written to the day meanwhile. After an error, the day has its
   * own rows. */
  replace(day: Day, tier: Tier): Promise<void>;
  discard(day: Day, tier: Tier): Promise<void>;
  /** Changes with every write to a day. */
  writtenTo(day: Day): Promise<string>;
  /** Profiles of `earlier`, a day of merged profiles, that arrived late hold at most until the first one of their series on
   * `day`. */
  endLateRows(earlier: Day, day: Day): Promise<void>;
  /** Frees what was replaced long enough ago that no query reads it. */
  closeRetired(): Promise<void>;
  /** Learns how large days are. */
  measure(): Promise<void>;
  setSwept(oldest: Day | ""): Promise<void>;
  /** Interrupts what is being built, now and later. */
  endBuilds(): void;
  copyTo(folder: string): Promise<void>;
  close(): void;
}
