import { expect, test } from "vitest";
import { censusEvidence } from "./census_evidence.js";

const counted = (timeMs: number, types: string[], objects: number[], bytes: number[]) => ({
  pid: 100,
  timeMs,
  types,
  objects: Float64Array.from(objects),
  bytes: Float64Array.from(bytes),
});

test("a type that was too small to record at first counts as zero until then", () => {
  const censuses = [
    counted(0, ["str"], [50], [1000]),
    counted(1000, ["app.Session", "str"], [10, 51], [4096, 1000]),
    counted(2000, ["app.Session", "str"], [20, 52], [8192, 1000]),
  ];
  expect(censusEvidence(censuses)).toMatchObject({
    pid: 100,
    timesMs: [0, 1000, 2000],
    types: [
      { type: "str", objects: [50, 51, 52] },
      { type: "app.Session", objects: [0, 10, 20], bytes: [0, 4096, 8192] },
    ],
  });
});

test("a recording without a census has no census evidence", () => {
  expect(censusEvidence([])).toBeNull();
});
