/**
 * Removes rows of meta.duckdb that no day refers to any more, and values of labels that no row has, so that they leave the
 * label budget.
 *
 *     1. open streams forget which rows they have written; rows that are staged from now on are noted
 *     2. next to other work: the ids that days refer to are collected, and what is missing from them is unused
 *     3. alone: unused rows are deleted, except those that were staged meanwhile
 */
import type { DuckDBConnection } from "@duckdb/node-api";
import type { StoreDatabase } from "../duckdb/database.js";
import { META_TABLES } from "../duckdb/row_database.js";
import { collectUnused, createUsed, deleteUnused, takeStaged } from "../duckdb/unused_rows.js";
import type { SweepDatabase } from "../row_store/row_store.js";

export const sweep: SweepDatabase<StoreDatabase> = async ({
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
  });
  try {
    await database.apart(async (connection) => {
      await collectUsed(connection, database);
      await collectUnused(connection, kept(), META_TABLES);
      await alone(async () => {
        await takeStaged(connection, meta.noted);
        await labels.remove(connection, async () => deleteUnused(connection, kept(), META_TABLES));
        await connection.run("CHECKPOINT");
      });
    });
  } finally {
    meta.endNotes();
    labels.endNotes();
  }
};

async function collectUsed(connection: DuckDBConnection, database: StoreDatabase): Promise<void> {
  await createUsed(connection);
  for (const day of database.days) {
    if (database.isEnding) {
      throw new Error("the store is closing");
    }
    const schema = database.schemaOf(day);
    await connection.run(`INSERT INTO used_stacks SELECT DISTINCT stack_id FROM ${schema}.samples`);
    await connection.run(
      `INSERT INTO used_labels SELECT DISTINCT series_id, label_id FROM ${schema}.samples`,
    );
    const tables = ["profiles", "metrics", "events"];
    if (database.tierOf(day) !== "raw") {
      tables.push("rolled_metrics");
    }
    for (const table of tables) {
      await connection.run(
        `INSERT INTO used_series SELECT DISTINCT series_id FROM ${schema}.${table}`,
      );
    }
  }
}
