/** Verdicts of stored subjects: `tidemark diagnose RECORDING`, `tidemark diagnose SNAPSHOT`. */
import { diagnose, evidenceOfSnapshots } from "../../diagnose/index.js";
import type { Tell } from "../../model/base/units.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { Recording } from "../../recording/types.js";
import { evidenceOf } from "./evidence.js";
import { analyseSnapshot } from "./gpu_snapshot.js";

/** `tell` counts looks. Throws TidemarkError where one turns out damaged. */
export async function diagnoseRecording(recording: Recording, tell: Tell): Promise<DiagnosisJson> {
  return diagnose(await evidenceOf(recording, tell));
}

/** `tell` counts MiB of the file. Throws TidemarkError for a damaged file. */
export async function diagnoseSnapshot(path: string, tell: Tell): Promise<DiagnosisJson> {
  return diagnose(evidenceOfSnapshots([await analyseSnapshot(path, tell)]));
}
