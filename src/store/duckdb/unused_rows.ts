/** Rows of metadata that nothing refers to, found and deleted by one connection, whose temporary tables hold their ids. */
import type { DuckDBConnection } from "@duckdb/node-api";
import type { MetaTable } from "./row_database.js";
import { TABLES } from "./schema.js";

/** Tables of the ids that are used, for {@link collectUnused}: used_stacks, used_series, used_labels. */
export async function createUsed(connection: DuckDBConnection): Promise<void> {
  await connection.run("CREATE OR REPLACE TEMP TABLE used_stacks (id UBIGINT)");
  await connection.run("CREATE OR REPLACE TEMP TABLE used_series (id UBIGINT)");
  await connection.run("CREATE OR REPLACE TEMP TABLE used_labels (series_id UBIGINT, id UBIGINT)");
}

/** Ids that are not deleted, because they were staged meanwhile. */
export async function takeStaged(
  connection: DuckDBConnection,
  noted: ReadonlySet<bigint>,
): Promise<void> {
  await connection.run(
    "CREATE OR REPLACE TEMP TABLE staged AS SELECT unnest($ids::UBIGINT[]) AS id",
    { ids: `[${[...noted].join(", ")}]` },
  );
}

/** Into the tables unused_TABLE. `kept`: streams, as JSON. */
export async function collectUnused(
  connection: DuckDBConnection,
  kept: string,
  tables: readonly MetaTable[],
): Promise<void> {
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
  for (const table of tables) {
    const sql = unused[table];
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

/** Except what is in {@link takeStaged}. */
export async function deleteUnused(
  connection: DuckDBConnection,
  kept: string,
  tables: readonly MetaTable[],
): Promise<void> {
  for (const table of tables) {
    const id = Object.keys(TABLES[table])[0];
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
