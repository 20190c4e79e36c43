/** The rows of one day, collected for one INSERT into each table. */

import { contentId } from "../duckdb/content_ids.js";
import type { DaySink } from "../duckdb/row_database.js";
import type { SampleTarget } from "../duckdb/sample_chunks.js";
import { type AddRow, type ColumnValue, TABLES } from "../duckdb/schema.js";
import type { ClickhouseConnection } from "./connection.js";
import { RowBinary } from "./row_binary.js";
import { columnNames, columnTypes } from "./tables.js";

type FactTable = "metrics" | "profiles" | "events";
/** Tables in the order in which they are written: samples first, so that no profile is there without them. */
const ORDER = ["samples", "profiles", "metrics", "events"] as const;

const SAMPLE_COLUMNS = Object.keys(TABLES.samples).filter(
  (name) => name !== "day",
) as (keyof typeof TABLES.samples)[];

const TYPES = {
  metrics: columnTypes("metrics"),
  profiles: columnTypes("profiles"),
  samples: columnTypes("samples"),
  events: columnTypes("events"),
};

/** The column `stream_id` of its rows. */
export function streamIdOf(stream: string): bigint {
  return contentId("stream name", stream);
}

export class DayRows implements DaySink {
  readonly #part: string;
  readonly #addMeta: AddRow;
  readonly #tables = {
    metrics: new RowBinary(),
    profiles: new RowBinary(),
    samples: new RowBinary(),
    events: new RowBinary(),
  };
  readonly #ids = new Map<string, bigint>();
  /** The frame whose rows are added, and the number of the next one. */
  #streamId = 0n;
  #endOffset = 0;
  #row = 0;
  readonly samples: SampleTarget;
  /** The values of the sample that is being set; null: there is none. */
  #sample: Partial<Record<keyof typeof TABLES.samples, ColumnValue>> | null = null;

  constructor(part: string, addMeta: AddRow) {
    this.#part = part;
    this.#addMeta = addMeta;
    const vectors = Object.fromEntries(
      Object.keys(TABLES.samples).map((name) => [
        name,
        {
          setItem: (_row: number, value: ColumnValue) => {
            if (this.#sample !== null) {
              this.#sample[name as keyof typeof TABLES.samples] = value;
            }
          },
        },
      ]),
    ) as unknown as SampleTarget["vectors"];
    this.samples = {
      vectors,
      nextRow: () => {
        this.#endSample();
        this.#sample = {};
        return 0;
      },
    };
  }

  begin(stream: string, endOffset: number): void {
    this.#endSample();
    let id = this.#ids.get(stream);
    if (id === undefined) {
      id = streamIdOf(stream);
      this.#ids.set(stream, id);
    }
    this.#streamId = id;
    this.#endOffset = endOffset;
    this.#row = 0;
  }

  readonly add: AddRow = (table, ...values: ColumnValue[]) => {
    if (table === "metrics") {
      const [, , , value = 0] = values;
      this.#addRow(table, [...values, 0, value]);
    } else if (table === "profiles" || table === "events") {
      this.#addRow(table, values);
    } else {
      this.#addMeta(table, ...values);
    }
  };

  #addRow(table: FactTable | "samples", values: readonly ColumnValue[]): void {
    this.#tables[table].addRow(TYPES[table], [
      ...[this.#part, ...values],
      ...[this.#streamId, this.#endOffset, this.#row],
    ]);
    this.#row += 1;
  }

  #endSample(): void {
    const sample = this.#sample;
    if (sample !== null) {
      this.#sample = null;
      this.#addRow(
        "samples",
        SAMPLE_COLUMNS.map((name) => sample[name] ?? 0),
      );
    }
  }

  async insert(clickhouse: ClickhouseConnection): Promise<void> {
    this.#endSample();
    for (const table of ORDER) {
      const rows = this.#tables[table];
      if (rows.rows > 0) {
        await clickhouse.insert(table, columnNames(table), rows.bytes);
      }
    }
  }
}
