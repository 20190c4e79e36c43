import { expect, test } from "vitest";
import type { Metric } from "../../model/profile/series.js";
import { UnsampledGrowth } from "./unsampled_growth.js";

const START = 1_000_000;

function growth(metric: Metric, values: readonly number[], series = 0): boolean {
  const handles = new UnsampledGrowth(START, 8_000);
  values.forEach((value, n) => {
    handles.polled([{ timeMs: START + n * 2_000, series, metric, value }]);
  });
  return handles.growing.has(metric);
}

test("descriptors opened after the start are growth; those from the start are not", () => {
  expect(growth("openFiles", [3, 10, 20, 40, 60, 60, 61, 60])).toBe(false);
  expect(growth("openFiles", [3, 3, 3, 3, 3, 10, 14, 19])).toBe(true);
});

test("fluctuation is not growth until it exceeds the former maximum", () => {
  expect(growth("threads", [4, 4, 4, 4, 4, 12, 4, 12, 4])).toBe(false);
  expect(growth("shmemRssBytes", [0, 0, 0, 0, 0, 2e6, 5e6])).toBe(true);
  expect(growth("shmemRssBytes", [0, 0, 0, 0, 0, 2e6, 5e6, 1e6])).toBe(false);
});

test("growth of a ledger's figures is measured from the first ledger", () => {
  expect(growth("ledger.anon.other", [1e6, 2e6, 4e6])).toBe(false);
  expect(growth("ledger.anon.other", [1e6, 2e6, 6e6])).toBe(true);
});

test("other processes and other metrics are ignored", () => {
  expect(growth("openSockets", [0, 0, 0, 0, 0, 100], 1)).toBe(false);
  expect(growth("anonRssBytes", [0, 0, 0, 0, 0, 1e9])).toBe(false);
});

test("growing descriptors may be sockets until those were counted twice", () => {
  const watched = new UnsampledGrowth(START, 8_000);
  const at = (seconds: number, metric: Metric, value: number) =>
    watched.polled([{ timeMs: START + seconds * 1_000, series: 0, metric, value }]);
  at(8, "openFiles", 3);
  at(9, "openFiles", 30);
  expect([...watched.growing]).toEqual(["openFiles", "openSockets"]);
  at(9, "openSockets", 2);
  at(11, "openSockets", 2);
  expect([...watched.growing]).toEqual(["openFiles"]);
  at(13, "openSockets", 40);
  expect([...watched.growing]).toEqual(["openFiles", "openSockets"]);
});
