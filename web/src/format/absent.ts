/** Sentences for what a recording does not contain. */
import type { SummaryJson } from "../../../src/model/documents/documents.js";

type Imported = SummaryJson["imported"];

export function noSamples(imported: Imported): string {
  return imported === undefined
    ? "No samples: this program was not profiled, or it allocated less than a sampling period."
    : `${imported.tool} does not record bytes by call stack.`;
}

export function noLiveCourse(imported: Imported): string {
  return imported === undefined
    ? noSamples(imported)
    : `${imported.tool} does not record live bytes over time.`;
}

export function noReadings(imported: Imported): string {
  return imported === undefined
    ? "No readings of this process: it ended before the first poll, or /proc could not be read."
    : `${imported.tool} does not record memory over time.`;
}
