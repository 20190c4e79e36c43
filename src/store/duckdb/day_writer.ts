/** Appends rows to the tables of one day within a transaction. */
import { type DuckDBAppender, DuckDBDataChunkWriter } from "@duckdb/node-api";
import { DAY_TABLES, type Day, type StoreDatabase } from "./database.js";
import type { MetaStaging } from "./meta_staging.js";
import { SampleChunks } from "./sample_chunks.js";
import { type AddRow, type ColumnValue, TABLES } from "./schema.js";
import { storedValue } from "./stored_value.js";
import type { RowSink } from "./stream_rows.js";

type DayTable = Exclude<(typeof DAY_TABLES)[number], "samples">;

export class DayWriter implements RowSink {
  readonly #appenders = new Map<string, DuckDBAppender>();
  readonly #writers = new Map<string, DuckDBDataChunkWriter>();
  readonly samples: SampleChunks;
  readonly #meta: MetaStaging;

  private constructor(appenders: ReadonlyMap<string, DuckDBAppender>, meta: MetaStaging) {
    this.#meta = meta;
    for (const [table, appender] of appenders) {
      this.#appenders.set(table, appender);
      if (table !== "samples") {
        this.#writers.set(table, DuckDBDataChunkWriter.forAppender(appender));
      }
    }
    this.samples = new SampleChunks(appenders.get("samples") as DuckDBAppender);
  }

  static async open(database: StoreDatabase, day: Day, meta: MetaStaging): Promise<DayWriter> {
    const appenders = new Map<string, DuckDBAppender>();
    for (const table of DAY_TABLES) {
      const appender = await database.writer.createAppender(table, "main", database.schemaOf(day));
      appenders.set(table, appender);
    }
    return new DayWriter(appenders, meta);
  }

  readonly add: AddRow = (table, ...values: ColumnValue[]) => {
    const writer = this.#writers.get(table);
    if (writer === undefined) {
      this.#meta.add(table, ...values);
      return;
    }
    const types = Object.values(TABLES[table as DayTable]);
    writer.appendRow(values.map((value, index) => storedValue(value, types[index] ?? "")));
  };

  close(): void {
    this.samples.flush();
    for (const writer of this.#writers.values()) {
      writer.flush();
    }
    for (const appender of this.#appenders.values()) {
      appender.closeSync();
    }
  }
}
