/**
 * Removes metadata that no row refers to any more. ClickHouse itself compares stacks and frames, and deletes them in the
 * background: rows that are inserted later stay. All else is compared in the local copy, and deleted there and in ClickHouse.
 */
import type { DuckDBConnection } from "@duckdb/node-api";
import { rowsOf } from "../duckdb/connection.js";
import type { MetaTable, OtherMeta } from "../duckdb/row_database.js";
import { sweepBySteps } from "../row_store/sweep_steps.js";
import type { ClickhouseDatabase } from "./database.js";
import { CLICKHOUSE_TABLES, literal } from "./tables.js";

/** Rows that one statement names. */
const MOST_ROWS = 5_000;
/** Tables whose rows are compared in the local copy. */
const LOCAL = [
  "series",
  "labels",
  "streams",
  "verdicts",
  "verdict_holders",
  "label_values",
] as const satisfies (MetaTable | OtherMeta)[];

export const sweep = sweepBySteps<ClickhouseDatabase>({
  begin: deleteDictionaries,
  collectUsed,
  async finish(connection, database, remove) {
    const before = await keysOf(connection);
    await remove();
    await deleteMissing(database, before, await keysOf(connection));
  },
});

async function deleteDictionaries({ clickhouse }: ClickhouseDatabase): Promise<void> {
  const name = clickhouse.database;
  const used = `SELECT stack_id FROM ${name}.samples`;
  await clickhouse.run(`ALTER TABLE ${name}.stacks DELETE WHERE stack_id NOT IN (${used})`);
  await clickhouse.run(
    `ALTER TABLE ${name}.frames DELETE WHERE frame_id NOT IN (
      SELECT arrayJoin(frame_ids) FROM ${name}.stacks WHERE stack_id IN (${used}))`,
  );
}

async function collectUsed(
  connection: DuckDBConnection,
  { clickhouse, fetches }: ClickhouseDatabase,
): Promise<void> {
  const name = clickhouse.database;
  for (const table of ["profiles", "metrics", "events"]) {
    await fetches.saved(
      { sql: `SELECT DISTINCT series_id AS id FROM ${name}.${table}`, beside: {} },
      { id: "UBIGINT" },
      (rows) => connection.run(`INSERT INTO used_series SELECT id FROM ${rows}`),
    );
  }
  await fetches.saved(
    { sql: `SELECT DISTINCT series_id, label_id FROM ${name}.samples`, beside: {} },
    { series_id: "UBIGINT", label_id: "UBIGINT" },
    (rows) => connection.run(`INSERT INTO used_labels SELECT series_id, label_id FROM ${rows}`),
  );
}

type Keys = ReadonlyMap<(typeof LOCAL)[number], ReadonlySet<string>>;

/** The keys of all rows of the local copy, as conditions of ClickHouse. */
async function keysOf(connection: DuckDBConnection): Promise<Keys> {
  const keys = new Map<(typeof LOCAL)[number], Set<string>>();
  for (const table of LOCAL) {
    const { key } = CLICKHOUSE_TABLES[table];
    const rows = await rowsOf(connection, `SELECT ${key.join(", ")} FROM ${table}`);
    const values = rows.map((row) =>
      key.map((name) => {
        const value = row[name];
        return typeof value === "bigint" ? String(value) : literal(String(value));
      }),
    );
    keys.set(table, new Set(values.map((each) => `(${each.join(", ")})`)));
  }
  return keys;
}

async function deleteMissing(
  { clickhouse }: ClickhouseDatabase,
  before: Keys,
  after: Keys,
): Promise<void> {
  for (const table of LOCAL) {
    const left = after.get(table);
    const gone = [...(before.get(table) ?? [])].filter((key) => left?.has(key) !== true);
    const key = CLICKHOUSE_TABLES[table].key.join(", ");
    for (let at = 0; at < gone.length; at += MOST_ROWS) {
      await clickhouse.run(
        `ALTER TABLE ${clickhouse.database}.${table} DELETE WHERE (${key}) IN (${gone.slice(at, at + MOST_ROWS).join(", ")})`,
      );
    }
  }
}
