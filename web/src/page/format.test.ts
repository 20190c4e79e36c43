import { describe, expect, test } from "vitest";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
  formatRelative,
  formatShare,
} from "./format.js";

const MIB = 1024 ** 2;

describe("formats", () => {
  test.each([
    [0, "0 B"],
    [812, "812 B"],
    [1024, "1.00 KiB"],
    [1.25 * MIB, "1.25 MiB"],
    [999.4 * MIB, "999 MiB"],
    [1023.9 * MIB, "1.00 GiB"],
    [-3 * MIB, "−3.00 MiB"],
    [Number.NaN, "–"],
  ])("bytes %s: %s", (bytes, words) => expect(formatBytes(bytes)).toBe(words));

  test.each([
    [12 * MIB, "+12.0 MiB/h"],
    [-0.5 * MIB, "−0.50 MiB/h"],
    [-2048 * MIB, "−2,048 MiB/h"],
    [0, "0.00 MiB/h"],
  ])("growth %s: %s", (rate, words) => expect(formatGrowth(rate)).toBe(words));

  test.each([
    [8_300, "+8.3 s"],
    [59_990, "+1:00"],
    [65_000, "+1:05"],
    [7_384_000, "+2:03:04"],
    [-500, "−0.5 s"],
  ])("%s ms after the start: %s", (ms, words) =>
    expect(formatRelative(1e12 + ms, 1e12)).toBe(words),
  );

  test.each([
    [0.4, "<1 ms"],
    [999, "999 ms"],
    [9_960, "10 s"],
    [61_000, "1 min 01 s"],
    [7_300_000, "2 h 01 min"],
  ])("duration %s: %s", (ms, words) => expect(formatDuration(ms)).toBe(words));

  test("counts and shares", () => {
    expect(formatCount(1234)).toBe("1,234");
    expect(formatCount(419_430)).toBe("419 k");
    expect(formatCount(-12)).toBe("−12");
    expect(formatShare(0.5)).toBe("50 %");
    expect(formatShare(0.0004)).toBe("<0.1 %");
    expect(formatShare(-0.031)).toBe("-3.1 %");
  });
});
