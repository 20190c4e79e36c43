/** The recorded ledgers as stacked curves: the parts of RSS over time. */

import { addAt, float64At } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { LEDGER_PARTS, type LedgerPartName } from "../../../src/model/profile/ledger.js";
import { ledgerMetric, type MemorySeries } from "../../../src/model/profile/series.js";

export interface LedgerCurves {
  /** Seconds since 1970. */
  readonly times: number[];
  /** Non-empty parts in the order of the ledger; `stacked` includes the preceding parts. */
  readonly parts: readonly {
    readonly part: LedgerPartName;
    readonly bytes: number[];
    readonly stacked: number[];
  }[];
}

/**
 * Ledgers are read one process after another, so each moment uses the last earlier ledger of every live
 * process, or its first. `pid` null: all processes together.
 */
export function ledgerCurves(report: ReportDocument, pid: number | null): LedgerCurves {
  const ledgers = report.series
    .filter((series) => pid === null || series.pid === pid)
    .map(ledgersOf)
    .filter(({ timesMs }) => timesMs.length > 0);
  const times = [...new Set(ledgers.flatMap(({ timesMs }) => timesMs))].sort((a, b) => a - b);
  const sums = LEDGER_PARTS.map((part) => ({ part, bytes: new Float64Array(times.length) }));
  for (const ledger of ledgers) {
    times.forEach((timeMs, at) => {
      const row = rowAt(ledger, timeMs);
      if (row < 0) {
        return;
      }
      for (const [part, { bytes }] of sums.entries()) {
        addAt(bytes, at, ledger.bytes[part]?.[row] ?? 0);
      }
    });
  }
  const below = new Float64Array(times.length);
  const parts = sums.flatMap(({ part, bytes }) => {
    if (!bytes.some((value) => value > 0)) {
      return [];
    }
    bytes.forEach((value, at) => {
      addAt(below, at, value);
    });
    return [{ part, bytes: [...bytes], stacked: [...below] }];
  });
  return { times: times.map((timeMs) => timeMs / 1000), parts };
}

interface ProcessLedgers {
  readonly timesMs: number[];
  /** By part, by ledger. */
  readonly bytes: number[][];
  /** When the process was first and last polled. */
  readonly startMs: number;
  readonly endMs: number;
}

function ledgersOf({ timesMs, values }: MemorySeries): ProcessLedgers {
  const columns = LEDGER_PARTS.map((part) => values.get(ledgerMetric(part)));
  const rows = Array.from(timesMs, (_, row) => row).filter((row) =>
    columns.some((column) => column !== undefined && !Number.isNaN(float64At(column, row))),
  );
  return {
    timesMs: rows.map((row) => float64At(timesMs, row)),
    bytes: columns.map((column) => rows.map((row) => column?.[row] || 0)),
    startMs: timesMs[0] ?? 0,
    endMs: timesMs.at(-1) ?? 0,
  };
}

/** -1 while the process did not exist. */
function rowAt({ timesMs, startMs, endMs }: ProcessLedgers, timeMs: number): number {
  if (timeMs < startMs || timeMs > endMs) {
    return -1;
  }
  let row = 0;
  while ((timesMs[row + 1] ?? Number.POSITIVE_INFINITY) <= timeMs) {
    row += 1;
  }
  return row;
}
