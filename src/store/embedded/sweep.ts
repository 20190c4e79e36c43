/**
 * Removes rows of meta.duckdb that no day refers to any more, and values of labels that no row has, so that they leave the
 * label budget.
 */
import type { DuckDBConnection } from "@duckdb/node-api";
import type { StoreDatabase } from "../duckdb/database.js";
import { sweepBySteps } from "../row_store/sweep_steps.js";

export const sweep = sweepBySteps<StoreDatabase>({
  collectUsed,
  async finish(connection, _database, remove) {
    await remove();
    await connection.run("CHECKPOINT");
  },
});

async function collectUsed(connection: DuckDBConnection, database: StoreDatabase): Promise<void> {
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
