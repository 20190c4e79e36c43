import type { DiagnosisJson } from "./diagnosis_document.js";

/** The verdict for a page, which has no rules and no advice catalogue of its own. */
export interface DiagnosisPage {
  readonly diagnosis: DiagnosisJson;
  /** Code before and after for the diagnosis's advice; empty if there is nothing to fix. */
  readonly examples: readonly AdviceExample[];
  /** For each suspect and each frame of its stack: whether it is the program's own code. */
  readonly ownFrames: readonly (readonly boolean[])[];
}

export interface AdviceExample {
  /** "TM-A003" */
  readonly id: string;
  /** The line above it: whether its names are the program's own. */
  readonly intro: string;
  readonly before: string;
  readonly after: string;
}
