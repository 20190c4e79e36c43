import { expect, it } from "vitest";
import { type MarkReading, UnreadPeaks } from "./unread_peaks.js";

const MIB = 2 ** 20;

/** Readings of one poll: MiB of the tree, and the highest of each process. */
function poll(timeMs: number, tree: number, ...marks: number[]): MarkReading[] {
  const about = { startedMs: 0, timeMs };
  return [
    { ...about, process: 0, metric: "treeRssBytes", bytes: tree * MIB },
    ...marks.map((mark, process) => ({
      ...{ ...about, process, metric: "vmHwmBytes", bytes: mark * MIB },
    })),
  ];
}

it("finds the peak between two readings, once", () => {
  const peaks = new UnreadPeaks(0);
  expect(peaks.after(poll(100, 10, 10))).toEqual([]);
  expect(peaks.after(poll(200, 12, 300))).toEqual([{ timeMs: 200, bytes: 300 * MIB }]);
  expect(peaks.after(poll(300, 12, 300))).toEqual([]);
});

it("finds each of several polls at once, also before a higher reading", () => {
  const peaks = new UnreadPeaks(0);
  const polls = [...poll(1, 10, 10), ...poll(2, 11, 90), ...poll(3, 11, 90), ...poll(4, 500, 500)];
  expect(peaks.after(polls)).toEqual([{ timeMs: 2, bytes: 90 * MIB }]);
});

it("is silent about a program that grows from reading to reading", () => {
  const peaks = new UnreadPeaks(0);
  const polls = [1, 2, 3, 4, 5].flatMap((at) => poll(at, 100 * at, 100 * at + 0.5));
  expect(peaks.after(polls)).toEqual([]);
});

it("finds a child's peak, and not a mark from before the recording", () => {
  const peaks = new UnreadPeaks(60_000);
  expect(peaks.after(poll(60_001, 10, 700, 5))).toEqual([]);
  expect(peaks.after(poll(60_002, 10, 700, 80))).toEqual([{ timeMs: 60_002, bytes: 80 * MIB }]);
});

it("takes the first mark of a process that was recorded from its start", () => {
  expect(new UnreadPeaks(60_000).after(poll(61_000, 10, 80))).toEqual([]);
  expect(new UnreadPeaks(100).after(poll(1500, 10, 80))).toEqual([
    { timeMs: 1500, bytes: 80 * MIB },
  ]);
});

it("takes what the kernel reports at the end, if something is known to compare it with", () => {
  const peaks = new UnreadPeaks(0);
  const end = { timeMs: 900, maxRssBytes: 400 * MIB };
  expect(peaks.atEnd(end)).toEqual([]);
  peaks.after(poll(100, 10, 10));
  expect(peaks.atEnd(end)).toEqual([{ timeMs: 900, bytes: 400 * MIB }]);
  expect(peaks.atEnd({ ...end, maxRssBytes: 0 })).toEqual([]);
});
