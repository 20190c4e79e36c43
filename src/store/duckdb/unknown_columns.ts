/** The columns of an export that an imported file does not know: they are NULL there, not 0. */
import {
  hasErrors,
  type ImportedFigure,
  type ImportedSource,
  isUnknown,
} from "../../model/profile/imported.js";
import type { TABLES } from "./schema.js";

type UnknownColumns = {
  readonly profiles: readonly (keyof typeof TABLES.profiles)[];
  readonly samples: readonly (keyof typeof TABLES.samples)[];
};

const OF_FIGURE: Readonly<Partial<Record<ImportedFigure, UnknownColumns>>> = {
  live: { profiles: ["live_bytes"], samples: ["live_bytes", "live_objects", "live_variance"] },
  peak: { profiles: [], samples: ["peak_bytes"] },
  allocated: {
    profiles: ["allocated_bytes"],
    samples: ["allocated_bytes", "allocated_objects"],
  },
  objects: { profiles: [], samples: ["live_objects", "allocated_objects"] },
  time: { profiles: ["duration_ms"], samples: [] },
  python: { profiles: [], samples: ["domain"] },
};

/** No file contains how old its live memory is. */
const OF_EVERY_FILE: UnknownColumns = { profiles: ["period_bytes"], samples: ["age_bucket"] };
const OF_ESTIMATES: UnknownColumns = { profiles: [], samples: ["live_variance"] };

/** By table; empty for a recording of our own. */
export function unknownColumns(
  imported: ImportedSource | undefined,
): [table: "profiles" | "samples", columns: string[]][] {
  if (imported === undefined) {
    return [];
  }
  const found = [
    OF_EVERY_FILE,
    ...(hasErrors(imported) ? [] : [OF_ESTIMATES]),
    ...Object.entries(OF_FIGURE).flatMap(([figure, columns]) =>
      isUnknown(imported, figure as ImportedFigure) ? [columns] : [],
    ),
  ];
  return (["profiles", "samples"] as const).map((table) => [
    table,
    [...new Set(found.flatMap((columns) => columns[table]))],
  ]);
}
