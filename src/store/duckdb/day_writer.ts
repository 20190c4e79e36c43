/** Appends rows to the tables of one day within a transaction. */
import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunkWriter,
} from "@duckdb/node-api";
import { DAY_TABLES, type DaySink } from "./row_database.js";
import { SampleChunks } from "./sample_chunks.js";
import { type AddRow, type ColumnValue, TABLES } from "./schema.js";
import { storedValue } from "./stored_value.js";

type DayTable = Exclude<(typeof DAY_TABLES)[number], "samples">;

export class DayWriter implements DaySink {
  readonly #appenders = new Map<string, DuckDBAppender>();
  readonly #writers = new Map<string, DuckDBDataChunkWriter>();
  readonly samples: SampleChunks;
  readonly #addMeta: AddRow;

  private constructor(appenders: ReadonlyMap<string, DuckDBAppender>, addMeta: AddRow) {
    this.#addMeta = addMeta;
    for (const [table, appender] of appenders) {
      this.#appenders.set(table, appender);
      if (table !== "samples") {
        this.#writers.set(table, DuckDBDataChunkWriter.forAppender(appender));
      }
    }
    this.samples = new SampleChunks(appenders.get("samples") as DuckDBAppender);
  }

  /** `schema`: of the day. */
  static async open(
    connection: DuckDBConnection,
    schema: string,
    addMeta: AddRow,
  ): Promise<DayWriter> {
    const appenders = new Map<string, DuckDBAppender>();
    for (const table of DAY_TABLES) {
      const appender = await connection.createAppender(table, "main", schema);
      appenders.set(table, appender);
    }
    return new DayWriter(appenders, addMeta);
  }

  readonly add: AddRow = (table, ...values: ColumnValue[]) => {
    const writer = this.#writers.get(table);
    if (writer === undefined) {
      this.#addMeta(table, ...values);
      return;
    }
    const types = Object.values(TABLES[table as DayTable]);
    writer.appendRow(values.map((value, index) => storedValue(value, types[index] ?? "")));
  };

  /** Rows and the offsets of their streams are written in one transaction. */
  begin(): void {}

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
