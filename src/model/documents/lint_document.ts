import type { Bytes } from "../base/units.js";

export type LintSeverity = "error" | "warning";

/** `tidemark.lint/1`: leak patterns in Python source. */
export interface LintJson {
  schema: "tidemark.lint/1";
  /** By file and line; with a recording, by what it measured, largest first. */
  findings: LintFindingJson[];
  /** How many files were checked. */
  files: number;
  /** How many lines these have. */
  lines: number;
  /** How many findings are left out by comments in the source and by the baseline. */
  suppressed: number;
  baselined: number;
  /** Files, or parts of files, that could not be checked. */
  errors: { file: string; line: number; message: string }[];
}

/** One leak pattern at one place. Lines and columns count from 1; `endColumn` is after the last character. */
export interface LintFindingJson {
  file: string;
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
  /** "TM-L001". */
  rule: string;
  /** "module-container-grows". */
  name: string;
  severity: LintSeverity;
  message: string;
  /** The first line's text. */
  text: string;
  /** A change that `--fix` makes. */
  fix?: { description: string; edits: LintEditJson[] };
  /** With a recording: bytes allocated at the lines of the finding, or, if there are none, in the function around it. */
  measured?: {
    where: "line" | "function";
    liveBytes: Bytes;
    liveBytesAtPeak: Bytes;
    allocatedBytes: Bytes;
  };
}

export interface LintEditJson {
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
  text: string;
}
