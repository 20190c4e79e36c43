import type { DiagnosisJson } from "./diagnosis_document.js";

/** "python-leak (82 % sure)"; without a percentage if nothing is claimed. */
export function verdictText({
  kind,
  confidence,
}: Pick<DiagnosisJson["verdict"], "kind" | "confidence">): string {
  return kind === "insufficient-evidence"
    ? kind
    : `${kind} (${Math.round(confidence * 100)} % sure)`;
}

/**
 * The evidence without the sentence that the verdict repeats; an undecided verdict repeats the rule that asks
 * for more evidence.
 */
export function remainingEvidence({
  verdict,
  evidence,
}: Pick<DiagnosisJson, "verdict" | "evidence">): DiagnosisJson["evidence"] {
  return evidence.filter(({ detail }) => !verdict.summary.includes(detail));
}
