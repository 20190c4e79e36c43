/**
 * The registry of other tools' formats: to add one, write its file in `export/` and add it to the list. The formats
 * that are read are in `import/`, which has its own list.
 */
import { csv } from "./export/csv.js";
import { folded } from "./export/folded.js";
import { pprof } from "./export/pprof.js";
import { speedscope } from "./export/speedscope.js";
import type { ProfileExporter } from "./format.js";

export type { ExportFormat, ProfileExporter } from "./format.js";
export {
  describeForeign,
  type ForeignRecording,
  type ImportOptions,
  type PlainValue,
  PROFILE_IMPORTERS,
  readForeign,
} from "./import/index.js";

/** In the order of `tidemark export --help`. */
export const PROFILE_EXPORTERS: readonly ProfileExporter[] = [pprof, folded, speedscope, csv];
