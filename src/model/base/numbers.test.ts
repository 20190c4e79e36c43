import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatBytesBriefly,
  formatBytesLikePyTorch,
  formatCount,
  formatDuration,
  formatDurationBriefly,
  formatElapsed,
  formatExactCount,
  formatFineShare,
  formatGrowth,
  formatGrowthInterval,
  formatMilliseconds,
  formatMoment,
  formatShare,
  formatSignedBytes,
  formatSignedCount,
  formatSlopeBriefly,
  formatSlopeInterval,
  formatUtcTime,
  formatWallClock,
} from "./numbers.js";

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("bytes", () => {
  it.each([
    [0, "0 B"],
    [812, "812 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [10.5 * KIB, "10.5 KiB"],
    [999.4 * KIB, "999 KiB"],
    [999.6 * KIB, "0.98 MiB"],
    [1.25 * MIB, "1.25 MiB"],
    [312 * MIB, "312 MiB"],
    [999.4 * MIB, "999 MiB"],
    [1023.9 * MIB, "1.00 GiB"],
    [1.21 * GIB, "1.21 GiB"],
    [-12 * MIB, "-12.0 MiB"],
    [-0.2, "0 B"],
    [3 * 2 ** 60, "3072 PiB"],
    [Number.NaN, "–"],
  ])("%d bytes are %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));

  it("have a sign if they are a change, unless they are zero", () => {
    expect([MIB, -MIB, 0.3].map(formatSignedBytes)).toEqual(["+1.00 MiB", "-1.00 MiB", "0 B"]);
  });

  it.each([
    [812, "812 B"],
    [1.44 * GIB, "1.4 GiB"],
    [9.97 * MIB, "10 MiB"],
    [12.3 * MIB, "12 MiB"],
    [999.7 * MIB, "1.0 GiB"],
    [-2 * MIB, "-2.0 MiB"],
  ])("%d bytes are briefly %s", (bytes, text) => expect(formatBytesBriefly(bytes)).toBe(text));

  it.each([
    [512, "512 bytes"],
    [2 * MIB, "2.00 MiB"],
    [1000 * MIB, "1000.00 MiB"],
    [1.5 * GIB, "1.50 GiB"],
  ])("%d bytes are %s in PyTorch's messages", (bytes, text) =>
    expect(formatBytesLikePyTorch(bytes)).toBe(text),
  );
});

describe("rates", () => {
  it.each([
    [12 * MIB, "+12.0 MiB/h"],
    [-0.5 * MIB, "-0.50 MiB/h"],
    [-2048 * MIB, "-2,048 MiB/h"],
    [0, "0.00 MiB/h"],
    [-1000, "0.00 MiB/h"],
  ])("growth of %d bytes an hour is %s", (rate, text) => expect(formatGrowth(rate)).toBe(text));

  it("have an interval unless its ends are printed as the rate is", () => {
    const slope = (1.3 * GIB) / HOUR;
    expect(formatSlopeInterval(slope, 0.9 * slope, 1.2 * slope)).toBe(
      "1.3 GiB/h (1.2 GiB/h to 1.6 GiB/h)",
    );
    expect(formatSlopeInterval(slope, 0.999 * slope, 1.001 * slope)).toBe("1.3 GiB/h");
    expect(formatGrowthInterval(578 * MIB, 567 * MIB, 589 * MIB)).toBe("+578 MiB/h (+567 to +589)");
    expect(formatGrowthInterval(578 * MIB, 577.8 * MIB, 578.2 * MIB)).toBe("+578 MiB/h");
    expect(formatGrowthInterval(0, 0, 0)).toBe("none");
    expect(formatGrowthInterval(0, -34_236 * MIB, 0)).toBe("none");
    expect(formatGrowthInterval(0, 0, 2 * MIB)).toBe("not measurable (0.00 to +2.00 MiB/h)");
  });

  it("of a slope in bytes per millisecond are per hour", () => {
    expect(formatSlopeBriefly((12 * MIB) / HOUR)).toBe("12 MiB/h");
  });
});

describe("counts and shares", () => {
  it.each([
    [0, "0"],
    [1204.4, "1,204"],
    [99_999, "99,999"],
    [99_999.6, "100 k"],
    [999_999, "1.00 M"],
    [3_400_000, "3.40 M"],
    [-12, "-12"],
    [Number.NaN, "–"],
  ])("a count of %d is %s", (count, text) => expect(formatCount(count)).toBe(text));

  it("are shortened from a given count on", () => {
    expect([9_999, 10_000, -20_000].map((count) => formatCount(count, 10_000))).toEqual([
      ...["9,999", "10.0 k", "-20.0 k"],
    ]);
  });

  it("show all digits on request", () => {
    expect(formatExactCount(1_204_567)).toBe("1,204,567");
    expect([1204, -12, 0].map(formatSignedCount)).toEqual(["+1,204", "-12", "0"]);
  });

  it.each([
    [0, "0 %", "0 %"],
    [0.0004, "<1 %", "<0.1 %"],
    [0.031, "3 %", "3.1 %"],
    [0.384, "38 %", "38 %"],
    [Number.NaN, "0 %", "–"],
  ])("a share of %d is %s, or %s", (share, whole, fine) => {
    expect(formatShare(share)).toBe(whole);
    expect(formatFineShare(share)).toBe(fine);
  });
});

describe("durations and times", () => {
  it.each([
    [0, "0 ms"],
    [0.4, "<1 ms"],
    [850, "850 ms"],
    [999.7, "1.0 s"],
    [59_960, "1 min 00 s"],
    [185_000, "3 min 05 s"],
    [3_599_800, "1 h 00 min"],
    [62 * MINUTE, "1 h 02 min"],
    [51 * HOUR, "2 d 03 h"],
    [Number.NaN, "–"],
  ])("%d ms are %s", (ms, text) => expect(formatDuration(ms)).toBe(text));

  it.each([
    [1500, "1.5 s"],
    [90_000, "90 s"],
    [150_000, "2.5 min"],
    [12 * HOUR, "12 h"],
    [72 * HOUR, "3.0 days"],
  ])("%d ms are briefly %s", (ms, text) => expect(formatDurationBriefly(ms)).toBe(text));

  it("of a pause are in milliseconds", () => {
    expect([formatMilliseconds(3.44), formatMilliseconds(3.44, 2)]).toEqual(["3.4 ms", "3.44 ms"]);
  });

  it.each([
    [8_300, "+8.3 s"],
    [59_990, "+1:00"],
    [65_000, "+1:05"],
    [7_384_000, "+2:03:04"],
    [-500, "-0.5 s"],
  ])("%d ms after the start is %s", (ms, text) =>
    expect(formatElapsed(1e12 + ms, 1e12)).toBe(text),
  );

  it("wall-clock times are in local time", () => {
    const at = new Date(2026, 2, 1, 9, 4, 6).getTime();
    expect(formatWallClock(at)).toBe("09:04:06");
    expect(formatWallClock(at, true)).toBe("03-01 09:04");
    expect(formatMoment(at)).toBe("03-01 09:04:06");
  });

  it("a time of day is in UTC", () => {
    expect(formatUtcTime(Date.UTC(2026, 2, 1, 12, 34, 56))).toBe("2026-03-01 12:34:56 UTC");
  });
});
