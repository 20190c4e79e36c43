import type { LabelBudget } from "../duckdb/label_budget.js";
import type { MetaStaging } from "../duckdb/meta_staging.js";
import type { RowDatabase } from "../duckdb/row_database.js";
import type { StreamRows } from "../duckdb/stream_rows.js";
import type { WrittenIds } from "../duckdb/written_ids.js";

/** Removes metadata that no row refers to any more. */
export type SweepDatabase<Database extends RowDatabase> = (parts: {
  readonly database: Database;
  /** Runs work while nothing else is written. */
  readonly alone: <Result>(work: () => Promise<Result>) => Promise<Result>;
  readonly meta: MetaStaging;
  readonly labels: LabelBudget;
  /** Those that are open. */
  readonly streams: ReadonlyMap<string, StreamRows>;
  readonly writtenIds: WrittenIds;
  /** Streams whose recordings are stored: they stay. */
  readonly recordings: readonly string[];
}) => Promise<void>;
