import { expect, test } from "vitest";
import {
  formatBytes,
  formatCount,
  formatElapsed,
  formatGrowth,
  formatShare,
  formatSignedBytes,
  formatSignedCount,
} from "./numbers.js";

const MIB = 2 ** 20;

test("negative numbers have a typographic minus sign", () => {
  expect([
    formatBytes(-3 * MIB),
    formatSignedBytes(-3 * MIB),
    formatSignedCount(-12),
    formatCount(-12),
    formatGrowth(-0.5 * MIB),
    formatElapsed(0, 500),
    formatShare(-0.031),
  ]).toEqual(["−3.00 MiB", "−3.00 MiB", "−12", "−12", "−0.50 MiB/h", "−0.5 s", "−3.1 %"]);
});

test("counts are shortened from 10,000 on", () => {
  expect([9_999, 10_000, -20_000, 419_430].map(formatCount)).toEqual([
    ...["9,999", "10.0 k", "−20.0 k", "419 k"],
  ]);
});
