/** A verdict, with what the page cannot know of itself: the catalogue's code, and whose the frames are. */

import { ADVICE } from "../../diagnose/index.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { DiagnosisPage } from "../../model/documents/diagnosis_page.js";
import { isOwn } from "../../model/documents/own_code.js";

/** @internal */
export function diagnosisPage(diagnosis: DiagnosisJson): DiagnosisPage {
  const { suspects, verdict } = diagnosis;
  const given = new Set(
    [...suspects.flatMap(({ advice }) => advice), ...diagnosis.advice].map(({ id }) => id),
  );
  // Without a verdict the advice is to watch on: its example is a command, of another process.
  const mends = verdict.kind !== "insufficient-evidence";
  return {
    diagnosis,
    examples: ADVICE.filter(({ id }) => mends && given.has(id)).map(({ id, before, after }) => ({
      id,
      before,
      after,
    })),
    ownFrames: suspects.map(({ stack }) => stack.map(isOwn)),
  };
}
