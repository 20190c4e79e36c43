/** Rows of meta.duckdb, collected and written at once. Existing rows stay, except that a series is replaced. */
import { DuckDBDataChunkWriter } from "@duckdb/node-api";
import { META_TABLES, type MetaTable, type RowDatabase } from "./row_database.js";
import { type AddRow, type ColumnValue, TABLES, type TableName } from "./schema.js";
import { storedValue } from "./stored_value.js";

export class MetaStaging {
  readonly #database: RowDatabase;
  /** By id; a newer row replaces an older one. */
  readonly #rows = new Map<MetaTable, Map<bigint, readonly ColumnValue[]>>();
  #isPrepared = false;
  #noted: Set<bigint> | null = null;

  constructor(database: RowDatabase) {
    this.#database = database;
  }

  readonly add: AddRow = (table, ...values: ColumnValue[]) => {
    if (!isMeta(table)) {
      throw new Error(`${table} is not a table of meta.duckdb`);
    }
    let rows = this.#rows.get(table);
    if (rows === undefined) {
      rows = new Map();
      this.#rows.set(table, rows);
    }
    rows.set(values[0] as bigint, values);
    this.#noted?.add(values[0] as bigint);
  };

  /** Notes the ids of rows that are added from now on, until {@link endNotes}. */
  noteStaged(): void {
    this.#noted = new Set();
  }

  get noted(): ReadonlySet<bigint> {
    return this.#noted ?? new Set();
  }

  endNotes(): void {
    this.#noted = null;
  }

  /** Discards the collected rows. */
  clear(): void {
    this.#rows.clear();
  }

  /** Writes all rows, in one transaction. */
  async commit(): Promise<void> {
    if (this.#rows.size === 0) {
      return;
    }
    const { metaWriter, localTables } = this.#database;
    await this.#prepare();
    for (const [table, rows] of this.#rows) {
      await this.#database.keep(table, rows.values());
    }
    const local = [...this.#rows].filter(([table]) => localTables.includes(table));
    for (const [table, rows] of local) {
      await metaWriter.run(`DELETE FROM staged_${table}`);
      const appender = await metaWriter.createAppender(`staged_${table}`, "main", "temp");
      const writer = DuckDBDataChunkWriter.forAppender(appender);
      const types = Object.values(TABLES[table]);
      for (const values of rows.values()) {
        writer.appendRow(values.map((value, index) => storedValue(value, types[index] ?? "")));
      }
      writer.flush();
      appender.closeSync();
    }
    await metaWriter.run("BEGIN");
    try {
      for (const [table] of local) {
        const id = Object.keys(TABLES[table])[0] ?? "";
        if (table === "series") {
          await metaWriter.run(
            `DELETE FROM series WHERE series_id IN (SELECT series_id FROM staged_series)`,
          );
        }
        await metaWriter.run(
          `INSERT INTO ${table} SELECT * FROM staged_${table} WHERE ${id} NOT IN (SELECT ${id} FROM ${table})`,
        );
      }
      await metaWriter.run("COMMIT");
    } catch (error) {
      await metaWriter.run("ROLLBACK").catch(() => {}); // the first error is more informative
      throw error;
    }
    this.#rows.clear();
  }

  async #prepare(): Promise<void> {
    if (this.#isPrepared) {
      return;
    }
    for (const table of this.#database.localTables) {
      await this.#database.metaWriter.run(
        `CREATE TEMP TABLE staged_${table} AS SELECT * FROM ${table} LIMIT 0`,
      );
    }
    this.#isPrepared = true;
  }
}

export function isMeta(table: TableName): table is MetaTable {
  return (META_TABLES as readonly string[]).includes(table);
}
