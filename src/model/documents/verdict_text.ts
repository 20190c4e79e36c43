import type { DiagnosisJson } from "./diagnosis_document.js";

/** "python-leak (82 % sure)"; no percentage where nothing is claimed. */
export function verdictText({
  kind,
  confidence,
}: Pick<DiagnosisJson["verdict"], "kind" | "confidence">): string {
  return kind === "insufficient-evidence"
    ? kind
    : `${kind} (${Math.round(confidence * 100)} % sure)`;
}
