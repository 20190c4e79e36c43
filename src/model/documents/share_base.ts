/** What the shares of a diagnosis's suspects are shares of, in words. */
import type { DiagnosisJson } from "./diagnosis_document.js";

export function shareBase({ growth }: Pick<DiagnosisJson, "growth">): string {
  return growth.ofLiveBytes || growth.sitesExceed ? "what all sites keep" : "the growth";
}
