import { expect, test } from "vitest";
import { present } from "../../../src/model/base/present.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { Metric } from "../../../src/model/profile/series.js";
import { deviceCurves } from "./deviceCurves.js";

function series(pid: number, timesMs: number[], columns: Partial<Record<Metric, number[]>>) {
  const values = new Map(
    Object.entries(columns).map(([metric, column]) => [
      metric as Metric,
      Float64Array.from(present(column)),
    ]),
  );
  return { pid, timesMs: Float64Array.from(timesMs), values };
}

const report = {
  series: [
    series(1, [1000, 2000, 3000, 4000], {
      "gpu.0.reservedBytes": [Number.NaN, 100, Number.NaN, 300],
      "gpu.1.reservedBytes": [Number.NaN, 7, 7, 7],
      "gpu.0.allocatedBytes": [Number.NaN, 50, 60, 70],
    }),
    series(2, [2000, 3000], { "gpu.0.reservedBytes": [1000, 2000] }),
  ],
} as unknown as ReportDocument;

test("devices of all processes add up, each reading until the next, none after its process", () => {
  expect(deviceCurves(report, null, [1, 2, 3, 4])).toEqual({
    reserved: [null, 1107, 2107, 307],
    allocated: [null, 50, 60, 70],
  });
});

test("of one process, and of one without a device", () => {
  expect(deviceCurves(report, 2, [2, 3])?.reserved).toEqual([1000, 2000]);
  const none = { series: [series(1, [1000], { rssBytes: [5] })] } as unknown as ReportDocument;
  expect(deviceCurves(none, null, [1])).toBeNull();
});
