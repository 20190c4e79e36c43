/**
 * The steps in which both databases remove metadata that no row refers to any more:
 *
 *     1. alone: open streams forget which rows they have written; rows that are staged from now on are noted
 *     2. next to other work: the ids that days refer to are collected, and what is missing from them is unused
 *     3. alone: unused rows are deleted, except those that were staged meanwhile
 */
import type { DuckDBConnection } from "@duckdb/node-api";
import type { RowDatabase } from "../duckdb/row_database.js";
import { collectUnused, createUsed, deleteUnused, takeStaged } from "../duckdb/unused_rows.js";
import type { SweepDatabase } from "./sweep_database.js";

interface SweepSteps<Database> {
  /** Ends step 1. */
  readonly begin?: (database: Database) => Promise<void>;
  /** Fills the tables of used ids. */
  readonly collectUsed: (connection: DuckDBConnection, database: Database) => Promise<void>;
  /** Step 3. `remove`: deletes from the tables on this connection. */
  readonly finish: (
    connection: DuckDBConnection,
    database: Database,
    remove: () => Promise<void>,
  ) => Promise<void>;
}

export function sweepBySteps<Database extends RowDatabase>({
  begin,
  collectUsed,
  finish,
}: SweepSteps<Database>): SweepDatabase<Database> {
  return async ({ database, alone, meta, labels, streams, writtenIds, recordings }) => {
    const kept = () => JSON.stringify([...recordings, ...streams.keys()]);
    const tables = database.localTables;
    await alone(async () => {
      writtenIds.clear();
      for (const rows of streams.values()) {
        rows.forgetWritten();
      }
      meta.noteStaged();
      labels.noteAccepted();
      await begin?.(database);
    });
    try {
      await database.apart(async (connection) => {
        await createUsed(connection);
        await collectUsed(connection, database);
        await collectUnused(connection, kept(), tables);
        await alone(async () => {
          await takeStaged(connection, meta.noted);
          await finish(connection, database, () =>
            labels.remove(connection, () => deleteUnused(connection, kept(), tables)),
          );
        });
      });
    } finally {
      meta.endNotes();
      labels.endNotes();
    }
  };
}
