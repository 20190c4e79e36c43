/** What the shares of a diagnosis's suspects are shares of, in words. */
import type { DiagnosisJson } from "./diagnosis_document.js";

/** Suspects that grow by this many times the growth of the program: its other memory is freed, or not resident. */
const EXCEEDS = 1.1;

export function shareBase({ suspects, growth }: DiagnosisJson): string {
  const kept = suspects.reduce(
    (sum, { puts, reads, partOf, growthBytesPerHour }) =>
      sum + (puts || reads || partOf ? 0 : growthBytesPerHour),
    0,
  );
  return growth.ofLiveBytes || (growth.bytesPerHour > 0 && kept > EXCEEDS * growth.bytesPerHour)
    ? "what all sites keep"
    : "the growth";
}
