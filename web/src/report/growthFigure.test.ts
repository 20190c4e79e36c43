import { expect, test } from "vitest";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import { growthFigure } from "./growthFigure.js";

const MIB = 2 ** 20;
const ofSeries = (some: object) =>
  ({ series: { growthBytesPerHour: 0, ...some } }) as unknown as SummaryJson;
const growth = { low: 0, high: 0, limitBytes: 0, msToLimit: 0 };

test("without an interval, the figure is that of the verdict below it", () => {
  const short = ofSeries({});
  const leaks = { growth: { ...growth, bytesPerHour: 6684 * MIB } };
  expect(growthFigure(short, leaks).value).toBe("+6,684 MiB/h");
  expect(growthFigure(short, leaks).note).not.toContain("too short");
  expect(growthFigure(short, { growth: { ...growth, bytesPerHour: 0 } }).value).toBe("–");
  expect(growthFigure(short, undefined).note).toContain("too short");
});

test("an interval that excludes zero is growth", () => {
  const measured = { growthLowBytesPerHour: 9 * MIB, growthHighBytesPerHour: 11 * MIB };
  expect(growthFigure(ofSeries({ growthBytesPerHour: 10 * MIB, ...measured }), undefined)).toEqual({
    value: "+10.0 MiB/h",
    note: "95 % interval: +9.00 to +11.0 MiB/h",
  });
  const doubted = { growthBytesPerHour: 10 * MIB, ...measured, growthDoubt: "small" };
  expect(growthFigure(ofSeries(doubted), undefined).note).toMatch(
    /not certain in so short a window$/,
  );
});

test("memory that does not change at all is no growth, and no matter of measuring", () => {
  const flat = { growthLowBytesPerHour: 0, growthHighBytesPerHour: 0 };
  expect(growthFigure(ofSeries(flat), undefined).value).toBe("none");
  const unclear = { growthLowBytesPerHour: -MIB, growthHighBytesPerHour: MIB };
  expect(growthFigure(ofSeries(unclear), undefined).value).toBe("not measurable");
});
