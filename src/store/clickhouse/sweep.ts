/**
 * Removes metadata that no row refers to any more. ClickHouse itself compares stacks and frames, and deletes them in the
 * background: rows that are inserted later stay. All else is compared in the local copy, and deleted there and in ClickHouse.
 *
 *     1. alone: open streams forget which rows they have written; ClickHouse begins to delete stacks and frames
 *     2. next to other work: the series and labels that days refer to are collected, and what is missing from them is unused
 *     3. alone: unused rows are deleted, except those that were staged meanwhile
 */
import type { DuckDBConnection } from "@duckdb/node-api";
import { rowsOf } from "../duckdb/database.js";
import type { MetaTable, OtherMeta } from "../duckdb/row_database.js";
import { collectUnused, createUsed, deleteUnused, takeStaged } from "../duckdb/unused_rows.js";
import type { SweepDatabase } from "../row_store/row_store.js";
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

export const sweep: SweepDatabase<ClickhouseDatabase> = async ({
  database,
  alone,
  meta,
  labels,
  streams,
  recordings,
}) => {
  const kept = () => JSON.stringify([...recordings, ...streams.keys()]);
  await alone(async () => {
    for (const rows of streams.values()) {
      rows.forgetWritten();
    }
    meta.noteStaged();
    labels.noteAccepted();
    await deleteDictionaries(database);
  });
  try {
    await database.apart(async (connection) => {
      await collectUsed(connection, database);
      await collectUnused(connection, kept(), database.localTables);
      await alone(async () => {
        await takeStaged(connection, meta.noted);
        const before = await keysOf(connection);
        await labels.remove(connection, () =>
          deleteUnused(connection, kept(), database.localTables),
        );
        await deleteMissing(database, before, await keysOf(connection));
      });
    });
  } finally {
    meta.endNotes();
    labels.endNotes();
  }
};

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
  await createUsed(connection);
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
