/** What RSS was made of when its ledgers were last read. */

import { float64At } from "../../model/base/columns.js";
import type { SummaryJson } from "../../model/documents/documents.js";
import { LEDGER_PARTS } from "../../model/profile/ledger.js";
import { ledgerMetric, type MemorySeries } from "../../model/profile/series.js";
import type { Recording } from "../../recording/types.js";

/** The last ledgers of the processes that had one when the run's last was read, added up; empty where the
 * recording holds none (a run of a few seconds, a process that may not be looked into). @internal */
export function lastLedger({ series }: Recording): Pick<SummaryJson, "ledger"> {
  const lasts = series.flatMap((one) => {
    const row = lastRow(one);
    return row < 0 ? [] : [{ one, row, timeMs: float64At(one.timesMs, row) }];
  });
  if (lasts.length === 0) {
    return {};
  }
  const atMs = Math.max(...lasts.map(({ timeMs }) => timeMs));
  // One that was polled no more by then had ended.
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

/** The series' last poll with a ledger; -1 where there is none. */
function lastRow(series: MemorySeries): number {
  const column = series.values.get(ledgerMetric("libraries"));
  return column?.findLastIndex((value) => !Number.isNaN(value)) ?? -1;
}
