/** The figure "Growth" at the top of a report. It never contradicts the verdict below it. */
import type { DiagnosisJson } from "../../../src/model/documents/diagnosis_document.js";
import type { SummaryJson } from "../../../src/model/documents/documents.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import { formatGrowth } from "../format/numbers.js";

const DOUBT = {
  none: "",
  small: "; too little to count in so short a window",
  past: "; not certainly in the last third",
} as const;

/** The rate if the interval excludes zero; the interval in any case. `diagnosis`: of the same recording, if there is one. */
export function growthFigure(
  { series, imported }: Pick<SummaryJson, "series" | "imported">,
  diagnosis: Pick<DiagnosisJson, "growth"> | undefined,
): { value: string; note: string } {
  if (isUnknown(imported, "rss")) {
    return { value: "–", note: "unknown without RSS" };
  }
  const { growthLowBytesPerHour: low, growthHighBytesPerHour: high } = series;
  if (low === undefined || high === undefined) {
    const rate = diagnosis?.growth.bytesPerHour ?? 0;
    return rate === 0
      ? { value: "–", note: "window too short to measure growth" }
      : {
          value: formatGrowth(rate),
          note: "of the verdict; too few readings of RSS for an interval",
        };
  }
  const range = `${formatGrowth(low).replace(" MiB/h", "")} to ${formatGrowth(high)}`;
  const isUnclear = low <= 0 && high >= 0;
  const value = isUnclear
    ? low === high
      ? "none"
      : "not measurable"
    : formatGrowth(series.growthBytesPerHour);
  return { value, note: `95 % interval: ${range}${DOUBT[series.growthDoubt ?? "none"]}` };
}
