import { expect, test } from "vitest";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { LedgerPartName } from "../../../src/model/profile/ledger.js";
import { ledgerMetric, type MemorySeries, type Metric } from "../../../src/model/profile/series.js";
import { ledgerCurves } from "./ledgerCurves.js";

const GAP = Number.NaN;

function series(
  pid: number,
  timesMs: number[],
  parts: Partial<Record<LedgerPartName, number[]>>,
): MemorySeries {
  const values = new Map<Metric, Float64Array>();
  for (const [part, bytes] of Object.entries(parts)) {
    values.set(ledgerMetric(part as LedgerPartName), Float64Array.from(bytes));
  }
  return { pid, timesMs: Float64Array.from(timesMs), values };
}

const report = {
  series: [
    series(1, [0, 1000, 2000, 3000, 4000], {
      "python.used": [GAP, 10, GAP, 30, GAP],
      "malloc.used": [GAP, 5, GAP, 6, GAP],
      libraries: [GAP, 0, GAP, 0, GAP],
    }),
    // Read between the two of the first, and gone before the second.
    series(2, [1500, 2000, 2500], { "python.used": [GAP, 7, GAP], "malloc.used": [GAP, 1, GAP] }),
    series(3, [0, 1000], {}),
  ],
} as unknown as ReportDocument;

test("each moment has the last ledger of every live process, stacked", () => {
  const { times, parts } = ledgerCurves(report, null);
  expect(times).toEqual([1, 2, 3]);
  expect(parts.map(({ part, bytes, stacked }) => [part, bytes, stacked])).toEqual([
    ["python.used", [10, 17, 30], [10, 17, 30]],
    ["malloc.used", [5, 6, 6], [15, 23, 36]],
  ]);
});

test("of one process", () => {
  const { times, parts } = ledgerCurves(report, 2);
  expect(times).toEqual([2]);
  expect(parts.map(({ stacked }) => stacked)).toEqual([[7], [8]]);
  expect(ledgerCurves(report, 3)).toEqual({ times: [], parts: [] });
});
