/** What a file of `export/` provides to the registry in `index.ts`. */
import type { ImportedSource } from "../model/profile/imported.js";
import type { Profile, SiteValue } from "../model/profile/profile.js";

/** What `tidemark export` needs to know about a format. */
export interface ExportFormat {
  /** Its name for `--format`. */
  readonly name: string;
  /** Appended to the recording's name if no output is given, with the leading dot. */
  readonly extension: string;
  /** One line for `tidemark export --help`: the content, and the tools that read the format. */
  readonly description: string;
  /** Whether `-o -` writes it to standard output; binary formats are not written to a terminal. */
  readonly stdout: "always" | "unless terminal" | "never";
  /**
   * Identifies a file of this format as Tidemark's, which may be overwritten; null if the format has no place
   * for the writer's name.
   */
  readonly mark: FormatMark | null;
}

/** Distinguishes Tidemark's own files from those of other tools. */
export interface FormatMark {
  /** Matches the first bytes, as latin1; for a gzip file, of its content. */
  readonly head: RegExp;
  /** Occurs somewhere in the file. */
  readonly text: string;
}

export interface ExportOptions {
  /** The figure of formats that hold one value per stack. */
  readonly value: SiteValue;
  /** A title for formats that have one: the command that was recorded. */
  readonly title: string;
  /** Where the recording was imported from; absent: Tidemark recorded it. */
  readonly imported?: ImportedSource | undefined;
}

/** A format that holds the profile at one moment: one file of `export/`. */
export interface ProfileExporter extends ExportFormat {
  readonly kind: "profile";
  /** Contains only `ExportOptions.value` per stack. */
  readonly oneValue?: true;
  /** The file's whole content. @throws TidemarkError TM-E008 if it is too large for the format */
  readonly encode: (profile: Profile, options: ExportOptions) => string | Uint8Array;
}
