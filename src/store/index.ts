/**
 * The data that a server keeps, and exports of a recording: to the formats of other tools, and to a DuckDB database or
 * Parquet files for SQL.
 *
 * Everything here throws TidemarkError only.
 */
export type { ProfileExporter } from "../formats/index.js";
export type { Recording } from "../recording/types.js";
export { type BackupOutcome, backUp, restore } from "./backup/backup.js";
export { EXPORTERS, type Exporter, type RecordingExporter } from "./exporters.js";
export {
  type FigureSeries,
  type FigureSeriesQuery,
  type LabelMatcher,
  type LabelQuery,
  type ProfileFigure,
  STREAM_LABEL,
} from "./interface/labels.js";
export { allowingPartial, isPartial } from "./interface/partial_answers.js";
export type {
  ProcessLife,
  ProfileQuery,
  Retention,
  SampleLabel,
  Selection,
  ServiceSpan,
  Store,
  StreamPart,
  VerdictRow,
  VersionGauges,
  WindowProfile,
} from "./interface/store.js";
export type { Window } from "./interface/window.js";
export { openStore, storeFolder } from "./open_store.js";
export { StreamFiles } from "./spool/stream_files.js";
