/**
 * Rows of ClickHouse in queries of DuckDB. In its FROM clause, a query names what it needs by a text that describes a
 * statement of ClickHouse. Before the query runs, the rows are fetched into a temporary table:
 *
 *     FROM "fetch {table, parts, need}" m JOIN series s ...
 *       1. series that fit need.of, from the local copy of `series`
 *       2. SELECT ... FROM metrics FINAL WHERE part IN ... AND series_id IN ids    ──► a file of JSON lines
 *       3. CREATE TEMP TABLE fetched_0 AS that file;  FROM fetched_0 m JOIN series s ...
 */
import { randomUUID } from "node:crypto";
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import type { Bytes } from "../../model/base/units.js";
import { rowsOf } from "../duckdb/connection.js";
import { SUMMED } from "../duckdb/kept/kept_sums.js";
import type { DayTable, Need, SampleWeights } from "../duckdb/row_database.js";
import { TABLES } from "../duckdb/schema.js";
import type { BesideTable, ClickhouseConnection } from "./connection.js";
import { literal } from "./tables.js";

/** What a query needs. Ids are text. */
type PartFetch =
  | { readonly table: DayTable; readonly parts: readonly string[]; readonly need: Need }
  | {
      readonly table: "sample_sums";
      readonly parts: readonly string[];
      readonly need: Need;
      readonly weights: SampleWeights;
    }
  | { readonly table: "rolled_counts" | "row_counts"; readonly parts: readonly string[] };
export type Fetch =
  | PartFetch
  | { readonly table: "stacks" | "frames"; readonly ids: readonly string[] };

const MARK = "fetch ";
const NAMED = /"fetch (?:[^"]|"")*"/g;

/** The columns of fetched tables, as DuckDB names their types. `day` of samples is NULL. */
const { day: _, ...SAMPLE_COLUMNS } = TABLES.samples;
const COLUMNS: Readonly<Record<Fetch["table"], Readonly<Record<string, string>>>> = {
  metrics: { ...TABLES.metrics, carry_ms: "BIGINT", most: "DOUBLE" },
  profiles: TABLES.profiles,
  samples: SAMPLE_COLUMNS,
  events: TABLES.events,
  rolled_counts: { series_id: "UBIGINT", ts_ms: "BIGINT", instances: "DOUBLE" },
  sample_sums: {
    ...{ step: "BIGINT", stack_id: "UBIGINT", domain: "VARCHAR", label_id: "UBIGINT" },
    ...Object.fromEntries(SUMMED.map((name) => [name, "DOUBLE"])),
  },
  row_counts: { series_id: "UBIGINT", n: "BIGINT" },
  stacks: TABLES.stacks,
  frames: TABLES.frames,
};

/** DuckDB reserves twice as much memory for each file that it reads, and several questions may read at once. */
const MOST_FIGURES_BYTES: Bytes = 1 << 20;
const MOST_TEXT_BYTES: Bytes = 16 << 20;
/** Tables whose rows may have long text. */
const WITH_TEXT: ReadonlySet<string> = new Set<Fetch["table"]>(["events", "stacks", "frames"]);

/** For a FROM clause. */
export function fetchName(fetch: Fetch): string {
  return `"${MARK}${JSON.stringify(fetch).replaceAll('"', '""')}"`;
}

interface Statement {
  readonly sql: string;
  readonly beside: Readonly<Record<string, BesideTable>>;
}

export class Fetches {
  readonly #clickhouse: ClickhouseConnection;
  /** For files of fetched rows. */
  readonly #folder: string;
  /** For names of temporary tables. */
  #tables = 0;

  constructor(clickhouse: ClickhouseConnection, folder: string) {
    this.#clickhouse = clickhouse;
    this.#folder = folder;
  }

  /** Those for work on another connection of DuckDB, over `clickhouse`. */
  over(clickhouse: ClickhouseConnection): Fetches {
    return new Fetches(clickhouse, this.#folder);
  }

  /** Fetches what a query needs into temporary tables of the connection. @returns the query that reads them */
  async resolved(
    connection: DuckDBConnection,
    sql: string,
    values: Readonly<Record<string, DuckDBValue>> = {},
  ): Promise<string> {
    const named = [...new Set(sql.match(NAMED))];
    let text = sql;
    for (const name of named) {
      const fetch = JSON.parse(name.slice(MARK.length + 1, -1).replaceAll('""', '"')) as Fetch;
      const table = `fetched_${this.#tables++}`;
      await this.into(connection, table, fetch, values);
      text = text.replaceAll(name, table);
    }
    return text;
  }

  /** Creates a temporary table. */
  async into(
    connection: DuckDBConnection,
    name: string,
    fetch: Fetch,
    values: Readonly<Record<string, DuckDBValue>> = {},
  ): Promise<void> {
    const columns = COLUMNS[fetch.table];
    const list = Object.entries(columns).map(([column, type]) => `"${column}" ${type}`);
    await connection.run(`CREATE OR REPLACE TEMP TABLE ${name} (${list.join(", ")})`);
    const statement = await this.#statement(connection, fetch, values);
    if (statement !== null) {
      await this.saved(
        statement,
        columns,
        (rows) => connection.run(`INSERT INTO ${name} SELECT * FROM ${rows}`),
        WITH_TEXT.has(fetch.table) ? MOST_TEXT_BYTES : MOST_FIGURES_BYTES,
      );
    }
  }

  /** Fetches rows into a file, for a FROM clause of `use`; there may be none, and then it is not called. */
  async saved(
    { sql, beside }: Statement,
    columns: Readonly<Record<string, string>>,
    use: (rows: string) => Promise<unknown>,
    mostRowBytes: Bytes = MOST_TEXT_BYTES,
  ): Promise<void> {
    const path = join(this.#folder, `${randomUUID()}.json`);
    try {
      await this.#clickhouse.save(sql, beside, path);
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) {
        const types = Object.entries(columns).map(([column, type]) => `"${column}": '${type}'`);
        await use(
          `read_json('${path.replaceAll("'", "''")}', format = 'newline_delimited', columns = {${types.join(", ")}}, maximum_object_size = ${mostRowBytes})`,
        );
      }
    } finally {
      rmSync(path, { force: true });
    }
  }

  async #weights(
    connection: DuckDBConnection,
    sql: string,
    values: Readonly<Record<string, DuckDBValue>>,
  ): Promise<BesideTable> {
    const rows = await rowsOf(
      connection,
      await this.resolved(connection, sql, values),
      valuesIn(sql, values),
    );
    return {
      structure: "step Int64, samples_id UInt64, ms Int64, counts Int64",
      lines: rows.map(({ step, samples_id: id, ms, counts }) => `${step}\t${id}\t${ms}\t${counts}`),
    };
  }

  /** null: it has no rows. */
  async #statement(
    connection: DuckDBConnection,
    fetch: Fetch,
    values: Readonly<Record<string, DuckDBValue>>,
  ): Promise<Statement | null> {
    const names = Object.keys(COLUMNS[fetch.table]).join(", ");
    const from = `${this.#clickhouse.database}.${fetch.table}`;
    if ("ids" in fetch) {
      const id = fetch.table === "stacks" ? "stack_id" : "frame_id";
      return fetch.ids.length === 0
        ? null
        : {
            sql: `SELECT ${names} FROM ${from} WHERE ${id} IN ids LIMIT 1 BY ${id}`,
            beside: { ids: { structure: "id UInt64", lines: fetch.ids } },
          };
    }
    return fetch.parts.length === 0 ? null : this.#partStatement(connection, fetch, values);
  }

  async #partStatement(
    connection: DuckDBConnection,
    fetch: PartFetch,
    values: Readonly<Record<string, DuckDBValue>>,
  ): Promise<Statement | null> {
    const names = Object.keys(COLUMNS[fetch.table]).join(", ");
    const from = `${this.#clickhouse.database}.${fetch.table}`;
    const beside: Record<string, BesideTable> = {
      parts: { structure: "part String", lines: fetch.parts },
    };
    if (fetch.table === "rolled_counts") {
      return { sql: `SELECT ${names} FROM ${from} FINAL WHERE part IN parts`, beside };
    }
    if (fetch.table === "row_counts") {
      const counts = (table: string) =>
        `SELECT series_id, count() AS n FROM ${this.#clickhouse.database}.${table} WHERE part IN parts GROUP BY series_id`;
      return {
        sql: `SELECT * FROM (${counts("samples")} UNION ALL ${counts("metrics")})`,
        beside,
      };
    }
    if (!("need" in fetch)) {
      throw new Error(`no such table: ${fetch.table}`);
    }
    const { need } = fetch;
    const ids = await seriesOf(connection, need, values);
    if (ids !== null) {
      if (ids.length === 0) {
        return null;
      }
      beside.ids = { structure: "id UInt64", lines: ids };
    }
    const where = conditionOf(need, ids !== null);
    if (fetch.table === "sample_sums") {
      beside.weights = await this.#weights(connection, fetch.weights.sql, values);
      return beside.weights.lines.length === 0
        ? null
        : { sql: sumsStatement(this.#clickhouse.database, where, fetch.weights), beside };
    }
    if (need.first === true) {
      const key = fetch.table === "metrics" ? "series_id, name" : "series_id";
      return {
        sql: `SELECT ${key}, first_ms AS ts_ms FROM (
          SELECT ${key}, min(ts_ms) AS first_ms FROM ${from} WHERE ${where} GROUP BY ${key})`,
        beside,
      };
    }
    if (need.newest === undefined) {
      return { sql: `SELECT ${names} FROM ${from} FINAL WHERE ${where}`, beside };
    }
    const step =
      need.newest === true
        ? ""
        : `, intDiv(greatest(ts_ms - toInt64(${need.newest.startMs}), toInt64(0)), ${need.newest.stepMs})`;
    // A row that was written twice changes neither the newest nor the largest.
    return {
      sql: `SELECT series_id, last_ms AS ts_ms, name, last AS value, carry AS carry_ms, largest AS most FROM (
        SELECT series_id, name, max(ts_ms) AS last_ms, argMax(value, ts_ms) AS last, argMax(carry_ms, ts_ms) AS carry,
          max(most) AS largest
        FROM ${from} WHERE ${where} GROUP BY series_id, name, carry_ms = 0${step})`,
      beside,
    };
  }
}

/** Each sample counts for the time and the number of profiles that use it. */
function sumsStatement(database: string, where: string, { ages }: SampleWeights): string {
  const figures = SUMMED.join(", ");
  const sums = SUMMED.map(
    (name) => `sum(${name} * ${name.startsWith("live") ? "ms" : "counts"}) AS sum_${name}`,
  );
  const renamed = SUMMED.map((name) => `sum_${name} AS ${name}`);
  const ofAges = ages === undefined ? "" : ` AND age_bucket BETWEEN ${ages[0]} AND ${ages[1]}`;
  return `SELECT step, stack_id, domain, label_id, ${renamed.join(", ")} FROM (
    SELECT step, stack_id, domain, label_id, ${sums.join(", ")} FROM (
      SELECT profile_id AS samples_id, stack_id, domain, label_id, ${figures} FROM ${database}.samples FINAL
      WHERE ${where} AND profile_id IN (SELECT samples_id FROM weights)${ofAges}) AS used
    ALL INNER JOIN weights USING samples_id
    GROUP BY step, stack_id, domain, label_id)`;
}

/** The values that a statement names. */
export function valuesIn(
  sql: string,
  values: Readonly<Record<string, DuckDBValue>>,
): Record<string, DuckDBValue> {
  const used = new Set(Array.from(sql.matchAll(/\$(\w+)/g), ([, name]) => name));
  return Object.fromEntries(Object.entries(values).filter(([name]) => used.has(name)));
}

/** Ids of the series that are needed; null: all. */
async function seriesOf(
  connection: DuckDBConnection,
  { of }: Need,
  values: Readonly<Record<string, DuckDBValue>>,
): Promise<string[] | null> {
  if (of === undefined || of === "true") {
    return null;
  }
  const rows = await rowsOf(
    connection,
    `SELECT s.series_id FROM series s WHERE ${of}`,
    valuesIn(of, values),
  );
  return rows.map(({ series_id }) => String(series_id));
}

function conditionOf({ fromMs, beforeMs, validFromMs, names }: Need, isOfSeries: boolean): string {
  const parts = ["part IN parts"];
  if (isOfSeries) {
    parts.push("series_id IN ids");
  }
  for (const [sql, ms] of [
    ["ts_ms >=", fromMs],
    ["ts_ms <", beforeMs],
    ["ts_ms + carry_ms >=", validFromMs],
  ] as const) {
    if (ms !== undefined) {
      parts.push(`${sql} ${Math.round(ms)}`);
    }
  }
  if (names !== undefined) {
    const each = names.map((name) =>
      name.endsWith("%") ? `name LIKE ${literal(name)}` : `name = ${literal(name)}`,
    );
    parts.push(`(${each.join(" OR ")})`);
  }
  return parts.join(" AND ");
}
