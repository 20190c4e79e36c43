import type { DiagnosisJson } from "./diagnosis_document.js";

/** The verdict as a page shows it: the page has no rules and no catalogue of its own. */
export interface DiagnosisPage {
  readonly diagnosis: DiagnosisJson;
  /** Code before and after, of the advice that the diagnosis gives; empty where the verdict has none to mend. */
  readonly examples: readonly AdviceExample[];
  /** By suspect, then by frame of its stack: whether it is the program's own code. */
  readonly ownFrames: readonly (readonly boolean[])[];
}

export interface AdviceExample {
  /** "TM-A003" */
  readonly id: string;
  readonly before: string;
  readonly after: string;
}
