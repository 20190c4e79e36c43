/**
 * The tables in ClickHouse: those of ../duckdb/schema.ts and those of metadata, with what ClickHouse needs more.
 *
 *     part                          the partition: a day in one tier, "2026-11-25.raw.1f6c"; table `days` names the valid ones
 *     stream_id, end_offset, row    the frame that a row is of (0 for rows of a coarser tier), and its number in it
 *
 * Tables are ReplacingMergeTree: rows with the same key are one row, the last one that was written.
 */
import { TABLES } from "../duckdb/schema.js";

/** Raised with every change to a table. */
export const TABLES_VERSION = 1;

/** What differs between versions of ClickHouse. */
export interface Dialect {
  /** Codecs for columns, and inserted rows that are synced to the disk. */
  readonly isModern: boolean;
}

/** As `version()` gives it. null: too old. */
export function dialectOf(version: string): Dialect | null {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    return null;
  }
  return { isModern: major >= MODERN_MAJOR };
}

const OLDEST = [18, 16] as const;
export const OLDEST_TEXT = OLDEST.join(".");
/** Both are older, but 20 was not looked at. */
const MODERN_MAJOR = 21;

const TYPES: Readonly<Record<string, string>> = {
  UBIGINT: "UInt64",
  BIGINT: "Int64",
  INTEGER: "Int32",
  DOUBLE: "Float64",
  VARCHAR: "String",
  "VARCHAR[]": "Array(String)",
  "UBIGINT[]": "Array(UInt64)",
};

export interface ClickhouseTable {
  /** Columns and their types. */
  readonly columns: Readonly<Record<string, string>>;
  readonly key: readonly string[];
  readonly partition?: string;
  /** The row with the largest value of this column is valid, instead of the last one. */
  readonly newest?: string;
}

function typed(columns: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(columns).map(([name, type]) => [name, TYPES[type] ?? type]),
  );
}

const { day: _, ...SAMPLES } = TABLES.samples;
const PART = { part: "String" };
const ORIGIN = { stream_id: "UInt64", end_offset: "Int64", row: "UInt32" };
const ORIGIN_KEY = Object.keys(ORIGIN);

export const CLICKHOUSE_TABLES = {
  about: { columns: { version: "UInt32" }, key: ["version"] },
  days: {
    columns: { day: "String", part: "String", tier: "String", change: "UInt64" },
    key: ["day"],
    newest: "change",
  },
  applied: {
    columns: { day: "String", stream: "String", end_offset: "Int64" },
    key: ["day", "stream"],
    partition: "day",
    newest: "end_offset",
  },
  metrics: {
    columns: {
      ...PART,
      ...typed(TABLES.metrics),
      carry_ms: "Int64",
      most: "Float64",
      ...ORIGIN,
    },
    key: ["name", "series_id", "ts_ms", ...ORIGIN_KEY],
    partition: "part",
  },
  profiles: {
    columns: { ...PART, ...typed(TABLES.profiles), ...ORIGIN },
    key: ["series_id", "ts_ms", ...ORIGIN_KEY],
    partition: "part",
  },
  samples: {
    columns: { ...PART, ...typed(SAMPLES), ...ORIGIN },
    key: ["series_id", "ts_ms", ...ORIGIN_KEY],
    partition: "part",
  },
  events: {
    columns: { ...PART, ...typed(TABLES.events), ...ORIGIN },
    key: ["series_id", "ts_ms", ...ORIGIN_KEY],
    partition: "part",
  },
  rolled_counts: {
    columns: { ...PART, series_id: "UInt64", ts_ms: "Int64", instances: "Float64" },
    key: ["series_id", "ts_ms"],
    partition: "part",
  },
  series: { columns: typed(TABLES.series), key: ["series_id"] },
  frames: { columns: typed(TABLES.frames), key: ["frame_id"] },
  stacks: { columns: typed(TABLES.stacks), key: ["stack_id"] },
  labels: { columns: typed(TABLES.labels), key: ["label_id"] },
  streams: { columns: { stream: "String", end_offset: "Int64" }, key: ["stream"] },
  verdicts: {
    columns: {
      ...{ stream: "String", ts_ms: "Int64", kind: "String", confidence: "Float64" },
      ...{ summary: "String", growth: "Float64", limit_bytes: "Float64", ms_to_limit: "Float64" },
    },
    key: ["stream"],
  },
  verdict_holders: { columns: { stream: "String", holders: "String" }, key: ["stream"] },
  label_values: {
    columns: { service: "String", label: "String", value: "String" },
    key: ["service", "label", "value"],
  },
} as const satisfies Record<string, ClickhouseTable>;

export type ClickhouseTableName = keyof typeof CLICKHOUSE_TABLES;

/** Tables whose rows lie in the partition of a day. */
export const PART_TABLES = ["metrics", "profiles", "samples", "events", "rolled_counts"] as const;

export function columnTypes(table: ClickhouseTableName): string[] {
  return Object.values(CLICKHOUSE_TABLES[table].columns);
}

export function columnNames(table: ClickhouseTableName): string[] {
  return Object.keys(CLICKHOUSE_TABLES[table].columns);
}

/** Where tables are created. */
interface Place {
  readonly database: string;
  /** null: on one server. */
  readonly cluster: string | null;
}

/** The part of a table of {@link PART_TABLES} that lies on one shard. */
export const SHARD_SUFFIX = "_shard";

/** Names of the tables that ClickHouse has. */
export function tableNames(cluster: string | null): string[] {
  const shards = cluster === null ? [] : PART_TABLES.map((table) => `${table}${SHARD_SUFFIX}`);
  return [...Object.keys(CLICKHOUSE_TABLES), ...shards];
}

/** The table that has the rows of a day, to change it. */
export function partTable({ database, cluster }: Place, table: (typeof PART_TABLES)[number]) {
  return cluster === null
    ? `${database}.${table}`
    : `${database}.${table}${SHARD_SUFFIX} ON CLUSTER ${cluster}`;
}

/**
 * In a cluster, the rows of days are divided among its shards by series, so that rows with the same key are on one shard; a
 * table without rows (Distributed) reads and writes all of them. Each server has all other tables: it answers names, and knows
 * which partitions are valid, without asking others.
 */
export function createStatements(
  place: Place,
  table: ClickhouseTableName,
  dialect: Dialect,
): string[] {
  const { database, cluster } = place;
  if (cluster === null) {
    return [createStatement(`${database}.${table}`, table, dialect, "")];
  }
  const isOfDays = (PART_TABLES as readonly string[]).includes(table);
  const path = `'/clickhouse/tables/${isOfDays ? "{shard}" : "all"}/${database}/${table}'`;
  const replica = isOfDays ? "'{replica}'" : "'{shard}-{replica}'";
  const own = isOfDays ? `${table}${SHARD_SUFFIX}` : table;
  const columns = columnNames(table).map((name, at) => `${name} ${columnTypes(table)[at]}`);
  return [
    createStatement(
      `${database}.${own} ON CLUSTER ${cluster}`,
      table,
      dialect,
      `${path}, ${replica}`,
    ),
    ...(isOfDays
      ? [
          `CREATE TABLE IF NOT EXISTS ${database}.${table} ON CLUSTER ${cluster} (${columns.join(", ")})
            ENGINE = Distributed(${cluster}, ${database}, ${own}, series_id)`,
        ]
      : []),
  ];
}

/** `replicated`: where ZooKeeper keeps it, and the name of this replica; "": it is not replicated. */
function createStatement(
  name: string,
  table: ClickhouseTableName,
  { isModern }: Dialect,
  replicated: string,
): string {
  const { columns, key, partition, newest }: ClickhouseTable = CLICKHOUSE_TABLES[table];
  const codec = (name: string) =>
    isModern ? (name === "ts_ms" ? " CODEC(DoubleDelta, ZSTD(1))" : " CODEC(ZSTD(1))") : "";
  const list = Object.entries(columns).map(([name, type]) => `${name} ${type}${codec(name)}`);
  const parameters = [
    ...(replicated === "" ? [] : [replicated]),
    ...(newest === undefined ? [] : [newest]),
  ];
  return `CREATE TABLE IF NOT EXISTS ${name} (${list.join(", ")})
    ENGINE = ${replicated === "" ? "" : "Replicated"}ReplacingMergeTree(${parameters.join(", ")})
    ${partition === undefined ? "" : `PARTITION BY ${partition}`}
    ORDER BY (${key.join(", ")})
    ${isModern ? "SETTINGS fsync_after_insert = 1, fsync_part_directory = 1" : ""}`;
}

/** Text as a literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
