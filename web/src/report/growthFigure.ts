/** The figure "Growth" at the top of a report. It never contradicts the verdict below it. */

import { GROWTH_DOUBTS } from "../../../src/model/base/numbers.js";
import type { DiagnosisJson } from "../../../src/model/documents/diagnosis_document.js";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import { formatGrowth } from "../format/numbers.js";

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
  const doubt = series.growthDoubt === undefined ? "" : `; ${GROWTH_DOUBTS[series.growthDoubt]}`;
  return { value, note: `95 % interval: ${range}${doubt}` };
}
