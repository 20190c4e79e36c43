/** What a file of `import/` provides to the registry in `src/formats/index.ts`. */
import { formatCount } from "../../model/base/numbers.js";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { ImportedFigure, LineFigures, Precision } from "../../model/profile/imported.js";
import type { ProfileSnapshot, ProfileTables } from "../../model/profile/profile.js";
import type { Metric, TimelineEvent } from "../../model/profile/series.js";

/** One compression around the content. */
export type Packing = "gzip" | "zstd" | "lz4";

/** A file of another tool, unpacked. */
export interface ForeignFile {
  readonly path: string;
  /** The content, without gzip, Zstandard or LZ4. */
  readonly bytes: Buffer;
  /** Outermost first: memray's own LZ4 inside of gzip is ["gzip", "lz4"]; empty if the file is not compressed. */
  readonly packings: readonly Packing[];
  /** The first bytes as latin1, for recognition. */
  readonly head: string;
  /** When the file was written; stands in for times that the format lacks. */
  readonly writtenMs: TimeMs;
}

/** The content in the form of a recording; figures that are not in `known` are 0 and marked unknown. */
export interface ForeignRecording {
  /** The tool with the version of its format if it has one: "memray (format 13)". */
  readonly tool: string;
  readonly known: readonly ImportedFigure[];
  readonly precision: Precision;
  readonly tables: ProfileTables;
  /** Ascending by time; empty if the format has no stacks. */
  readonly snapshots: readonly ProfileSnapshot[];
  readonly startedMs: TimeMs;
  readonly endedMs: TimeMs;
  readonly metrics: readonly {
    readonly metric: Metric;
    readonly timeMs: TimeMs;
    readonly value: number;
  }[];
  readonly events: readonly TimelineEvent[];
  /** Figures of source lines that are not sums over stacks; empty if the format has none. */
  readonly lines: readonly LineFigures[];
  /** Sentences about what the file does not contain, beyond the figures that are unknown. */
  readonly limits: readonly string[];
}

/** Of a format that contains profiles only. */
export const NO_SERIES: Pick<ForeignRecording, "metrics" | "events" | "lines"> = {
  metrics: [],
  events: [],
  lines: [],
};

/** The meaning of the numbers of a format without units. */
export type PlainValue = "live" | "peak" | "allocated";

export interface ImportOptions {
  /** `--value`: for formats whose numbers have no unit; null: not given. */
  readonly value: PlainValue | null;
}

/** One file of `import/`. */
export interface ProfileImporter {
  readonly name: string;
  /** One line for `tidemark import --help`: the tool and its file. */
  readonly description: string;
  /** Whether the content is of this format, by its first bytes; names are not considered. */
  recognizes(file: ForeignFile): boolean;
  /** @throws ForeignFault for content that the tool cannot have written, and TidemarkError */
  read(file: ForeignFile, options: ImportOptions): ForeignRecording;
}

/** Content that the tool cannot have written; the registry adds the path. */
export class ForeignFault extends Error {}

/** More than an importer holds in memory; the registry adds the path and makes it TM-E008. */
export class ForeignExcess extends Error {
  /** @param limit "2,000,000 sites" */
  constructor(readonly limit: string) {
    super(limit);
  }
}

/** Throws ForeignExcess for a table of a file that has reached its largest size. */
export function requireRoom(rows: number, most: number, what: string): void {
  if (rows >= most) {
    throw new ForeignExcess(`${formatCount(most)} ${what}`);
  }
}

/** The largest number of rows of any table that is read: calls, readings, stacks, messages. */
export const MOST_ROWS = 4_000_000;
/** The largest content that is read; a larger one ends in TM-E008 before it is in memory. */
export const MOST_CONTENT_BYTES: Bytes = 2 ** 30;
/** The largest JSON document, whose values take several times its size. */
export const MOST_JSON_BYTES: Bytes = 2 ** 28;
/** Deeper stacks are cut at the root. */
export const DEEPEST_STACK = 4096;

/** Duration of a recording whose format has no times. */
export const NO_DURATION: Millis = 0;
