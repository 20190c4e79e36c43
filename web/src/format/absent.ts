/** Sentences for what a recording does not contain. */
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";

type Imported = SummaryJson["imported"];

/** Its file never contained the figure, or the recording is cut off before it. */
function recordingOf({ tool }: NonNullable<Imported>): string {
  return `This recording, imported from ${tool},`;
}

export function noSamples(imported: Imported): string {
  return imported === undefined
    ? "No samples: this program was not profiled, or it allocated less than a sampling period."
    : `${recordingOf(imported)} has no bytes by call stack.`;
}

export function noLiveCourse(imported: Imported): string {
  return imported === undefined
    ? noSamples(imported)
    : `${recordingOf(imported)} has no live bytes over time.`;
}

export function noReadings(imported: Imported): string {
  return imported === undefined
    ? "No readings of this process: it ended before the first poll, or /proc could not be read."
    : `${recordingOf(imported)} has no memory over time.`;
}
