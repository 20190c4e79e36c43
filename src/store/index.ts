/**
 * Exports of a recording: to the formats of other tools, and to a DuckDB database or Parquet files for SQL.
 *
 * Everything here throws TidemarkError only.
 */
import type { Tell } from "../model/units.js";
import type { Recording } from "../recording/types.js";

export { toCsv, toFolded, toPprof, toSpeedscope } from "../formats/index.js";
export type { Recording } from "../recording/types.js";

/** As in duckdb/export.ts. Loaded when it is called: DuckDB's native library is large. */
export async function writeDuckdb(recording: Recording, file: string, tell: Tell): Promise<void> {
  const { writeDuckdb: write } = await import("./duckdb/export.js");
  return write(recording, file, tell);
}

/** As in duckdb/export.ts. Loaded when it is called: DuckDB's native library is large.
 * @returns the files written. */
export async function writeParquet(
  recording: Recording,
  folder: string,
  tell: Tell,
): Promise<string[]> {
  const { writeParquet: write } = await import("./duckdb/export.js");
  return write(recording, folder, tell);
}
