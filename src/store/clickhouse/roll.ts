/**
 * Makes the rows of a coarser tier: the day's rows are fetched into a file of DuckDB, rolled up by the same SQL as in the
 * embedded store (../duckdb/queries/roll_sql.ts), and inserted into a new partition, which no query reads yet.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import { createDay } from "../duckdb/created_tables.js";
import type { RowDatabase, RunStatement, StreamEnds } from "../duckdb/row_database.js";
import { type ColumnValue, TABLES } from "../duckdb/schema.js";
import type { Tier } from "../interface/tiers.js";
import type { ClickhouseConnection } from "./connection.js";
import { streamIdOf } from "./day_rows.js";
import type { Fetches } from "./fetches.js";
import { RowBinary } from "./row_binary.js";
import { columnNames, columnTypes, literal } from "./tables.js";

const MOST_ROWS = 100_000;
const { day: _, ...SAMPLE_COLUMNS } = TABLES.samples;
const METRIC_COLUMNS = { ...TABLES.metrics, carry_ms: "BIGINT", most: "DOUBLE" };
const COUNT_COLUMNS = { series_id: "UBIGINT", ts_ms: "BIGINT", instances: "DOUBLE" };

interface Rolling {
  readonly connection: DuckDBConnection;
  readonly clickhouse: ClickhouseConnection;
  readonly fetches: Fetches;
  /** For files. */
  readonly folder: string;
  readonly from: { readonly part: string; readonly tier: Tier };
  readonly to: { readonly part: string; readonly tier: Tier };
  readonly applied: StreamEnds;
  readonly fill: (run: RunStatement, from: string, to: string) => Promise<void>;
  readonly ending: AbortSignal;
}

export class RolledDay {
  readonly part: string;

  private constructor(part: string) {
    this.part = part;
  }

  /** The series of merged profiles are then in the local table `merged_series`. After an error, the partition may have rows. */
  static async build(rolling: Rolling): Promise<RolledDay> {
    const { connection, folder, from, to, fill, fetches, ending } = rolling;
    const files = ["roll_from", "roll_to"].map((name) => [name, join(folder, `${name}.duckdb`)]);
    try {
      for (const [name, file = ""] of files) {
        remove(file);
        await connection.run(`ATTACH '${file.replaceAll("'", "''")}' AS ${name}`);
      }
      await createDay(connection, "roll_from", from.tier);
      await createDay(connection, "roll_to", to.tier);
      await fetchDay(rolling);
      const run = async (sql: string) => {
        const resolved = await fetches.resolved(connection, sql);
        // An interrupt between two queries has no effect.
        ending.throwIfAborted();
        return connection.run(resolved);
      };
      await fill(run, "roll_from", "roll_to");
      await insertDay(rolling);
      return new RolledDay(to.part);
    } finally {
      for (const [name, file = ""] of files) {
        await connection.run(`DETACH DATABASE IF EXISTS ${name}`).catch(() => {}); // the first error is more informative
        remove(file);
      }
    }
  }
}

function remove(file: string): void {
  for (const suffix of ["", ".wal"]) {
    rmSync(`${file}${suffix}`, { recursive: true, force: true });
  }
}

/** Rows of a write that did not end are left out: they come again. */
async function fetchDay({
  clickhouse,
  fetches,
  connection,
  from,
  applied,
}: Rolling): Promise<void> {
  const tables = {
    metrics: METRIC_COLUMNS,
    profiles: TABLES.profiles,
    samples: SAMPLE_COLUMNS,
    events: TABLES.events,
    ...(from.tier === "raw" ? {} : { rolled_counts: COUNT_COLUMNS }),
  };
  const ends = new Map([...applied].map(([stream, end]) => [streamIdOf(stream).toString(), end]));
  for (const [table, columns] of Object.entries(tables)) {
    const source = `${clickhouse.database}.${table}`;
    const conditions = [`part = ${literal(from.part)}`];
    if (table !== "rolled_counts") {
      const streams = await clickhouse.rows(
        `SELECT stream_id, max(end_offset) AS end FROM ${source} WHERE ${conditions[0]} AND stream_id <> 0 GROUP BY stream_id`,
      );
      for (const { stream_id: id, end } of streams) {
        const done = ends.get(String(id)) ?? 0;
        if (Number(end) > done) {
          conditions.push(`NOT (stream_id = ${id} AND end_offset > ${done})`);
        }
      }
    }
    const names = Object.keys(columns).join(", ");
    const sql = `SELECT ${names} FROM ${source} FINAL WHERE ${conditions.join(" AND ")}`;
    await fetches.saved({ sql, beside: {} }, columns, async (rows) => {
      if (table !== "metrics") {
        await connection.run(
          `INSERT INTO roll_from.${table} (${names}) SELECT ${names} FROM ${rows}`,
        );
        return;
      }
      await connection.run(`CREATE OR REPLACE TEMP TABLE readings AS SELECT * FROM ${rows}`);
      await connection.run(
        "INSERT INTO roll_from.metrics SELECT series_id, ts_ms, name, value FROM readings WHERE carry_ms = 0",
      );
      if (from.tier !== "raw") {
        await connection.run(
          "INSERT INTO roll_from.rolled_metrics SELECT series_id, ts_ms, name, value, carry_ms, most FROM readings WHERE carry_ms > 0",
        );
      }
      await connection.run("DROP TABLE readings");
    });
  }
}

async function insertDay({ clickhouse, connection, to }: Rolling): Promise<void> {
  const selects = {
    samples: Object.keys(SAMPLE_COLUMNS).join(", "),
    profiles: Object.keys(TABLES.profiles).join(", "),
    events: Object.keys(TABLES.events).join(", "),
  };
  for (const [table, columns] of Object.entries(selects)) {
    await insert(clickhouse, connection, to.part, {
      ...{ table: table as keyof typeof selects, isOfFrames: true },
      sql: `SELECT ${columns} FROM roll_to.${table}`,
    });
  }
  await insert(clickhouse, connection, to.part, {
    ...{ table: "metrics", isOfFrames: true },
    sql: "SELECT series_id, ts_ms, name, value, carry_ms, most FROM roll_to.rolled_metrics",
  });
  await insert(clickhouse, connection, to.part, {
    ...{ table: "rolled_counts", isOfFrames: false },
    sql: "SELECT series_id, ts_ms, instances FROM roll_to.rolled_counts",
  });
  await connection.run(
    "CREATE OR REPLACE TABLE merged_series AS SELECT * FROM roll_to.rolled_series",
  );
}

async function insert(
  clickhouse: ClickhouseConnection,
  connection: DuckDBConnection,
  part: string,
  {
    table,
    isOfFrames,
    sql,
  }: {
    table: "samples" | "profiles" | "metrics" | "events" | "rolled_counts";
    isOfFrames: boolean;
    sql: string;
  },
): Promise<void> {
  const types = columnTypes(table);
  const encoded = new RowBinary();
  let row = 0;
  const send = async () => {
    if (encoded.rows > 0) {
      await clickhouse.insert(table, columnNames(table), encoded.bytes);
      encoded.clear();
    }
  };
  const result = await connection.stream(sql);
  for (;;) {
    const chunk = await result.fetchChunk();
    if (chunk === null || chunk.rowCount === 0) {
      break;
    }
    for (const values of chunk.getRows()) {
      encoded.addRow(types, [part, ...values.map(plain), ...(isOfFrames ? [0n, 0, row] : [])]);
      row += 1;
    }
    if (encoded.rows >= MOST_ROWS) {
      await send();
    }
  }
  await send();
}

function plain(value: DuckDBValue): ColumnValue {
  return value !== null && typeof value === "object" && "items" in value
    ? (value.items as readonly string[])
    : (value as ColumnValue);
}

/** Stores the series of merged profiles, which {@link RolledDay.build} left in a table. */
export async function addMergedSeries(
  database: Pick<RowDatabase, "metaWriter" | "keep">,
): Promise<void> {
  const { metaWriter } = database;
  const names = columnNames("series").join(", ");
  const reader = await metaWriter.runAndReadAll(`SELECT ${names} FROM merged_series`);
  await database.keep(
    "series",
    reader.getRows().map((row) => row.map(plain)),
  );
  await metaWriter.run(
    "INSERT INTO series SELECT * FROM merged_series WHERE series_id NOT IN (SELECT series_id FROM series)",
  );
  await metaWriter.run("DROP TABLE merged_series");
}

/** Profiles of the partition `to` hold at most until the first one of their series in `from`: the same rows again, with
 * another `carry_ms`, replace the earlier ones. */
export function lateRowsStatement(database: string, to: string, from: string): string {
  const names = columnNames("profiles");
  const columns = names.map((name) => (name === "carry_ms" ? "greatest(0, first - ts_ms)" : name));
  return `INSERT INTO ${database}.profiles (${names.join(", ")})
    SELECT ${columns.join(", ")} FROM (SELECT * FROM ${database}.profiles FINAL WHERE part = ${literal(to)}) AS late
    ALL INNER JOIN (
      SELECT series_id, min(ts_ms) AS first FROM ${database}.profiles WHERE part = ${literal(from)} GROUP BY series_id
    ) AS firsts USING series_id
    WHERE ts_ms + carry_ms > first`;
}
