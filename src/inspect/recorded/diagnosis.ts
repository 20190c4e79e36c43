/** Verdicts on files: `tidemark diagnose RECORDING`, `tidemark diagnose SNAPSHOT`. */

import { adviceExamples, diagnose, evidenceOfSnapshots } from "../../diagnose/index.js";
import type { OnProgress } from "../../model/base/units.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { DiagnosisPage } from "../../model/documents/diagnosis_page.js";
import { isOwn } from "../../model/documents/own_code.js";
import type { RowCondition } from "../../model/profile/row_filter.js";
import type { Recording } from "../../recording/types.js";
import { evidenceOf } from "./evidence.js";
import { analyseSnapshot } from "./gpu/gpu_snapshot.js";

/**
 * Uses only the rows that meet `where`. `onProgress` counts snapshots. Throws TidemarkError if one is damaged, or for
 * a condition that no row can meet.
 */
export async function diagnoseRecording(
  recording: Recording,
  onProgress: OnProgress,
  where: readonly RowCondition[] = [],
): Promise<DiagnosisJson> {
  return diagnose(await evidenceOf(recording, onProgress, where));
}

/** `onProgress` counts MiB of the file. Throws TidemarkError for a damaged file. */
export async function diagnoseSnapshot(
  path: string,
  onProgress: OnProgress,
): Promise<DiagnosisJson> {
  return diagnose(evidenceOfSnapshots([await analyseSnapshot(path, onProgress)]));
}

/**
 * A verdict with data that the page cannot compute itself: the code of the advice, and which frames are the
 * program's own. @internal
 */
export function diagnosisPage(diagnosis: DiagnosisJson): DiagnosisPage {
  return {
    diagnosis,
    examples: adviceExamples(diagnosis),
    ownFrames: diagnosis.suspects.map(({ stack }) => stack.map(isOwn)),
  };
}
