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
      await collectUnused(connection, kept());
      await alone(async () => {
        await connection.run(
          "CREATE OR REPLACE TEMP TABLE staged AS SELECT unnest($ids::UBIGINT[]) AS id",
          {
            ids: `[${[...meta.noted].join(", ")}]`,
          },
        );
        await labels.remove(connection, async () => deleteUnused(connection, kept()));
        await connection.run("CHECKPOINT");
      });
    });
  } finally {
    meta.endNotes();
    labels.endNotes();
  }
};

async function collectUsed(connection: DuckDBConnection, database: StoreDatabase): Promise<void> {
  await connection.run("CREATE OR REPLACE TEMP TABLE used_stacks (id UBIGINT)");
  await connection.run("CREATE OR REPLACE TEMP TABLE used_series (id UBIGINT)");
  await connection.run("CREATE OR REPLACE TEMP TABLE used_labels (series_id UBIGINT, id UBIGINT)");
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

/** Into the tables unused_TABLE. `kept`: streams, as JSON. */
async function collectUnused(connection: DuckDBConnection, kept: string): Promise<void> {
  await connection.run(
    `INSERT INTO used_series SELECT series_id FROM series
      WHERE stream IN (SELECT unnest(from_json($kept, '["VARCHAR"]')))`,
    { kept },
  );
  await connection.run(
    "INSERT INTO used_series SELECT root_id FROM series WHERE series_id IN (SELECT id FROM used_series)",
  );
  const unused = {
    series: "SELECT series_id AS id FROM series WHERE id NOT IN (SELECT id FROM used_series)",
    stacks: "SELECT stack_id AS id FROM stacks WHERE id NOT IN (SELECT id FROM used_stacks)",
    labels: "SELECT label_id AS id FROM labels WHERE id NOT IN (SELECT id FROM used_labels)",
    frames: `SELECT frame_id AS id FROM frames WHERE id NOT IN (
      SELECT unnest(frame_ids) FROM stacks WHERE stack_id IN (SELECT id FROM used_stacks))`,
  };
  for (const [table, sql] of Object.entries(unused)) {
    await connection.run(`CREATE OR REPLACE TEMP TABLE unused_${table} AS ${sql}`);
  }
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE unused_values AS
      SELECT service, label, value FROM label_values
      EXCEPT SELECT service, unnest(label_keys), unnest(label_vals) FROM series
        WHERE series_id IN (SELECT id FROM used_series)
      EXCEPT SELECT s.service, unnest(l.keys), unnest(l.vals)
        FROM (SELECT DISTINCT s.service, u.id FROM used_labels u JOIN series s USING (series_id)) s
          JOIN labels l ON l.label_id = s.id`,
  );
}

async function deleteUnused(connection: DuckDBConnection, kept: string): Promise<void> {
  for (const [table, id] of [
    ["series", "series_id"],
    ["stacks", "stack_id"],
    ["labels", "label_id"],
    ["frames", "frame_id"],
  ]) {
    await connection.run(
      `DELETE FROM ${table} WHERE ${id} IN (
        SELECT id FROM unused_${table} WHERE id NOT IN (SELECT id FROM staged))`,
    );
  }
  for (const table of ["streams", "verdicts", "verdict_holders"]) {
    await connection.run(
      `DELETE FROM ${table} WHERE stream NOT IN (SELECT stream FROM series)
        AND stream NOT IN (SELECT unnest(from_json($kept, '["VARCHAR"]')))`,
      { kept },
    );
  }
}
