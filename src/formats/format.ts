/** The types of the two registries: what a file of `export/` or `import/` provides. */
import type { Profile, SiteValue } from "../model/profile.js";

/** What `tidemark export` needs to know about a format. */
export interface ExportFormat {
  /** Its name for `--format`. */
  readonly name: string;
  /** Appended to the recording's name where no output is given, with the leading dot. */
  readonly extension: string;
  /** One line for `tidemark export --help`: the content, and the tools that read the format. */
  readonly description: string;
  /** Whether `-o -` writes it to standard output; binary formats are not written to a terminal. */
  readonly stdout: "always" | "unless terminal" | "never";
}

export interface ExportOptions {
  /** The figure of formats that hold one value per stack. */
  readonly value: SiteValue;
  /** A title for formats that have one: the command that was recorded. */
  readonly title: string;
}

/** A format that holds the profile at one moment: one file of `export/`. */
export interface ProfileExporter extends ExportFormat {
  readonly kind: "profile";
  /** The file's whole content. @throws TidemarkError TM-E008 where it is too large for the format */
  readonly encode: (profile: Profile, options: ExportOptions) => string | Uint8Array;
}

/**
 * A foreign format that is read as a profile: one file of `import/`, and one line in a list `IMPORTERS` in
 * `index.ts`. No foreign format is imported yet; `tidemark import` reads the agent's own pool files.
 */
export interface Importer {
  readonly name: string;
  /** One line for `tidemark import --help`: the tool that writes the format. */
  readonly description: string;
  /**
   * The profile, or null for bytes of another format, which the next importer then tries.
   * @param source the file's name, for errors
   * @throws TidemarkError TM-E006 for a version of this format that the importer does not support (it names
   * both versions), TM-E005 for damaged bytes
   */
  readonly decode: (bytes: Uint8Array, source: string) => Profile | null;
}
