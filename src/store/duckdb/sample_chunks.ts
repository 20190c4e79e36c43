/** The samples table, filled column by column in chunks of the database's own size. */
import {
  type DuckDBAppender,
  DuckDBDataChunk,
  DuckDBDateValue,
  type DuckDBType,
  type DuckDBValue,
  type DuckDBVector,
} from "@duckdb/node-api";
import { TABLES } from "./schema.js";

/** Rows of a chunk: the database's own vector size. */
const CHUNK_ROWS = 2048;
const MS_PER_DAY = 86_400_000;

type SampleColumn = keyof typeof TABLES.samples;
const COLUMNS = Object.keys(TABLES.samples) as SampleColumn[];

/** One value per column: `day` counts from 1970. */
type SampleVectors = Readonly<Record<SampleColumn, DuckDBVector>>;

/** Takes rows of the samples table. */
export interface SampleTarget {
  /** The columns of the row that {@link nextRow} returned last. */
  readonly vectors: SampleVectors;
  /** The row to write next; every column of it has to be set. */
  nextRow(): number;
}

/**
 * A chunk that is written in place, passed on when full, and reused:
 *
 *     const row = chunks.nextRow();
 *     chunks.vectors.live_bytes.setItem(row, 10);    // likewise for every column
 */
export class SampleChunks implements SampleTarget {
  readonly #appender: DuckDBAppender;
  readonly #chunk: DuckDBDataChunk;
  #vectors: SampleVectors;
  #rows = 0;

  constructor(appender: DuckDBAppender) {
    this.#appender = appender;
    const types: DuckDBType[] = COLUMNS.map((_, column) => appender.columnType(column));
    this.#chunk = DuckDBDataChunk.create(types, CHUNK_ROWS);
    this.#vectors = this.#columnVectors();
  }

  /** The columns of the row that {@link nextRow} returned last. */
  get vectors(): SampleVectors {
    return this.#vectors;
  }

  /** The row to write next; every column of it has to be set. */
  nextRow(): number {
    if (this.#rows === CHUNK_ROWS) {
      this.flush();
    }
    return this.#rows++;
  }

  /** Passes on the rows so far. */
  flush(): void {
    if (this.#rows === 0) {
      return;
    }
    for (const column of COLUMNS) {
      this.#vectors[column].flush();
    }
    this.#chunk.rowCount = this.#rows;
    this.#appender.appendDataChunk(this.#chunk);
    // Frees the texts of the rows.
    this.#chunk.reset();
    this.#chunk.rowCount = CHUNK_ROWS;
    this.#vectors = this.#columnVectors();
    this.#rows = 0;
  }

  #columnVectors(): SampleVectors {
    return Object.fromEntries(
      COLUMNS.map((name, column) => [name, this.#chunk.getColumnVector(column)]),
    ) as Record<SampleColumn, DuckDBVector<DuckDBValue>>;
  }
}

/** Accepts rows and discards them. */
export const NO_SAMPLES: SampleTarget = {
  nextRow: () => 0,
  vectors: Object.fromEntries(
    COLUMNS.map((name) => [name, { setItem: () => {} } as unknown as DuckDBVector]),
  ) as Record<SampleColumn, DuckDBVector>,
};

/** The day (UTC) that a moment lies in. */
export function dayOf(timeMs: number): DuckDBDateValue {
  return new DuckDBDateValue(Math.floor(timeMs / MS_PER_DAY));
}
