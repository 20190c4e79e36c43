/** What is known of a recording that was imported from another tool's file. */
import type { Bytes } from "../base/units.js";
import type { SiteValue } from "./profile.js";

/**
 * Figures that a source may lack: live bytes, bytes at the peak, allocated bytes, numbers of objects, RSS over
 * time, the times themselves, and whether Python's allocators or other code allocated.
 */
export const IMPORTED_FIGURES = [
  "live",
  "peak",
  "allocated",
  "objects",
  "rss",
  "time",
  "python",
] as const;
export type ImportedFigure = (typeof IMPORTED_FIGURES)[number];

/**
 * Whether the source counted each allocation, or estimated from samples, whose error is then unknown. `unknown`: the
 * format does not contain it.
 */
export const PRECISIONS = ["exact", "sampled", "unknown"] as const;
export type Precision = (typeof PRECISIONS)[number];

/** Where an imported recording comes from. Its unknown figures are stored as 0 and shown as unknown. */
export interface ImportedSource {
  /** "memray (format 13)" */
  readonly tool: string;
  /** Name of the imported file, without its folder. */
  readonly file: string;
  /** Absolute path of the folder that relative paths of source files start from; absent in older recordings. */
  readonly folder?: string;
  readonly unknown: readonly ImportedFigure[];
  /** Absent in recordings of older versions: unknown. */
  readonly precision?: Precision;
  /** Absent if the source has none. */
  readonly lines?: readonly LineFigures[];
}

/** Figures of a source line that the source measured by line. */
export interface LineFigures {
  readonly file: string;
  readonly line: number;
  readonly function: string;
  /** Highest live bytes of this line alone, at whatever time; null: unknown. */
  readonly peakBytes: Bytes | null;
  /** Bytes that memcpy and the like copied from this line; null: unknown. */
  readonly copiedBytes: Bytes | null;
}

/** Whether the standard errors of the figures are known: an exact source has none. */
export function hasErrors(source: Pick<ImportedSource, "precision"> | undefined): boolean {
  return source === undefined || source.precision === "exact";
}

/** The precision of an imported recording: "exact, as counted by tracemalloc". */
export function precisionText({
  tool,
  precision,
  unknown,
}: Pick<ImportedSource, "tool" | "precision" | "unknown">): string {
  const counts = (["live", "peak", "allocated"] as const).some((name) => !unknown.includes(name));
  if (!counts && precision !== "exact") {
    return `${unknown.includes("rss") ? "" : "readings of RSS, "}imported from ${tool}`;
  }
  switch (precision) {
    case "exact":
      return `exact, as counted by ${tool}`;
    case "sampled":
      return `estimates from samples by ${tool}, with unknown errors`;
    default:
      return `imported from ${tool}, with unknown errors`;
  }
}

export function isUnknown(source: ImportedSource | undefined, figure: ImportedFigure): boolean {
  return source?.unknown.includes(figure) === true;
}

type Source = Pick<ImportedSource, "tool" | "unknown">;

/**
 * Whether two recordings distinguish the allocators alike: memray counts PyMem_RawMalloc as Python's, for example, and
 * tracemalloc counts NumPy's arrays as native.
 */
export function sharesDomains(a: Source | undefined, b: Source | undefined): boolean {
  // "memray (format 13)"
  const nameOf = (source: Source | undefined) => source?.tool.replace(/ \(.*\)$/, "");
  const known = [a, b].every((source) => source?.unknown.includes("python") !== true);
  return known && nameOf(a) === nameOf(b);
}

const FIGURES: Readonly<Record<SiteValue, ImportedFigure>> = {
  liveBytes: "live",
  liveObjects: "live",
  peakBytes: "peak",
  peakObjects: "peak",
  allocatedBytes: "allocated",
  allocatedObjects: "allocated",
};

/** Whether the recording's source measured a value; what it did not measure is stored as 0. */
export function knowsValue(imported: ImportedSource | undefined, value: SiteValue): boolean {
  return (
    !isUnknown(imported, FIGURES[value]) &&
    !(value.endsWith("Objects") && isUnknown(imported, "objects"))
  );
}
