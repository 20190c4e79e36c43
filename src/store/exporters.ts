/** Every format that `tidemark export` writes, for one moment's profile or the whole recording. */

import { type ExportFormat, PROFILE_EXPORTERS, type ProfileExporter } from "../formats/index.js";
import type { OnProgress } from "../model/base/units.js";
import type { Recording } from "../recording/types.js";
import { WRITER_MARK } from "./duckdb/schema.js";
import { importWithDuckdb } from "./with_duckdb.js";

/** A format that holds the whole recording in one file. */
interface FileExporter extends ExportFormat {
  readonly kind: "recording file";
  /** @throws TidemarkError */
  readonly write: (recording: Recording, path: string, onProgress: OnProgress) => Promise<void>;
}

/** A format that holds the whole recording in a folder of files that end in `extension`. */
interface FolderExporter extends ExportFormat {
  readonly kind: "recording folder";
  /** Writes into an existing folder and returns the names of the files. @throws TidemarkError */
  readonly write: (
    recording: Recording,
    folder: string,
    onProgress: OnProgress,
  ) => Promise<string[]>;
}

export type RecordingExporter = FileExporter | FolderExporter;
export type Exporter = ProfileExporter | RecordingExporter;

function duckdbExport() {
  return importWithDuckdb("this format", () => import("./duckdb/export.js"));
}

const parquet: FolderExporter = {
  name: "parquet",
  extension: ".parquet",
  description: "a folder of Parquet files, one per table, for pandas and Polars",
  stdout: "never",
  mark: { head: /^PAR1/, text: WRITER_MARK },
  kind: "recording folder",
  write: async (...args) => (await duckdbExport()).writeParquet(...args),
};

const duckdb: FileExporter = {
  name: "duckdb",
  extension: ".duckdb",
  description: "a DuckDB database with the same tables, for SQL",
  stdout: "never",
  mark: { head: /^.{8}DUCK/s, text: WRITER_MARK },
  kind: "recording file",
  write: async (...args) => (await duckdbExport()).writeDuckdb(...args),
};

/** In the order of `tidemark export --help`. */
export const EXPORTERS: readonly Exporter[] = [...PROFILE_EXPORTERS, parquet, duckdb];
