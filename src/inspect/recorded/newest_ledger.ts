/** The parts of RSS at the last reading of its ledgers. */

import { float64At } from "../../model/base/columns.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { LEDGER_PARTS } from "../../model/profile/ledger.js";
import { ledgerMetric, type MemorySeries } from "../../model/profile/series.js";
import type { Recording } from "../../recording/types.js";

/**
 * The sum of the last ledgers of the processes that had one at the run's last reading; empty if the recording
 * has none (a short run, or a process that may not be read). @internal
 */
export function lastLedger({ series }: Recording): Pick<SummaryJson, "ledger"> {
  const lasts = series.flatMap((one) => {
    const row = lastRow(one);
    return row < 0 ? [] : [{ one, row, timeMs: float64At(one.timesMs, row) }];
  });
  if (lasts.length === 0) {
    return {};
  }
  const atMs = Math.max(...lasts.map(({ timeMs }) => timeMs));
  // A process that was no longer polled by then had ended.
  const living = lasts.filter(({ one }) => (one.timesMs.at(-1) ?? 0) >= atMs);
  const parts = LEDGER_PARTS.map((part) => ({
    part,
    bytes: living.reduce(
      (sum, { one, row }) => sum + (one.values.get(ledgerMetric(part))?.[row] ?? 0),
      0,
    ),
  }));
  return { ledger: { atMs, processes: living.length, parts } };
}

/** The series' last poll with a ledger; -1 if there is none. */
function lastRow(series: MemorySeries): number {
  const column = series.values.get(ledgerMetric("libraries"));
  return column?.findLastIndex((value) => !Number.isNaN(value)) ?? -1;
}
