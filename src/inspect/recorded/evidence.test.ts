import { expect, test } from "vitest";
import type { SnapshotMoment } from "../../recording/types.js";
import { freedAtWork, snapshotsAtWork } from "./evidence.js";

/** Snapshots of a run of 100 s: "10s 40" is a time and the live bytes; the last one is at the end. */
function snapshots(text: string): Pick<SnapshotMoment, "kind" | "timeMs" | "liveBytes">[] {
  const rows = text.split(",").map((row) => row.trim().split("s "));
  return rows.map(([time, live], i) => ({
    kind: i === rows.length - 1 ? "end" : "poll",
    timeMs: 1000 * Number(time),
    liveBytes: Number(live),
  }));
}

test("number of snapshots of a program at work", () => {
  expect(snapshotsAtWork(snapshots("0s 10, 50s 40, 90s 60, 100s 58"))).toBe(4);
  expect(snapshotsAtWork(snapshots("0s 10, 50s 40, 90s 60, 100s 5"))).toBe(3);
  // One poll happened at the end; the memory that was left then does not belong to the course of the program.
  expect(snapshotsAtWork(snapshots("0s 10, 50s 40, 70s 48, 90s 60, 98s 30, 100s 5"))).toBe(4);
  expect(snapshotsAtWork(snapshots("0s 10, 50s 40, 70s 48, 90s 60, 98s 6, 100s 6"))).toBe(4);
  // More is left than there was two snapshots before.
  expect(snapshotsAtWork(snapshots("0s 10, 50s 40, 80s 66, 92s 82, 100s 65"))).toBe(4);
  // Most of it is kept by libraries, and what the program itself had kept is freed.
  expect(snapshotsAtWork(snapshots("0s 100, 10s 300, 50s 315, 90s 330, 100s 305"))).toBe(4);
  expect(snapshotsAtWork(snapshots("0s 100, 10s 300, 50s 315, 90s 330, 100s 326"))).toBe(5);
  expect(snapshotsAtWork(snapshots("0s 100, 20s 300, 60s 310, 100s 298"))).toBe(3);
  // A program at work also frees memory.
  expect(snapshotsAtWork(snapshots("0s 10, 50s 60, 80s 30, 100s 5"))).toBe(3);
  expect(snapshotsAtWork(snapshots("0s 10, 50s 60, 80s 30, 90s 60, 98s 30, 100s 30"))).toBe(6);
});

test("a program that goes on after it freed its memory is at work", () => {
  const MIB = 2 ** 20;
  const series = (live: (second: number) => number) => ({
    pid: 1,
    timesMs: Float64Array.from({ length: 101 }, (_, i) => 1000 * i),
    values: new Map([
      ["liveBytes" as const, Float64Array.from({ length: 101 }, (_, i) => MIB * live(i))],
    ]),
  });
  const fell = (at: number, left: number) => series((second) => (second < at ? second : left));
  expect(freedAtWork(fell(90, 2))).toBe(true);
  expect(freedAtWork(fell(98, 2))).toBe(false);
  expect(freedAtWork(fell(90, 70))).toBe(false);
  expect(freedAtWork({ ...fell(90, 2), values: new Map() })).toBe(false);
  // The memory of the start was freed long ago, and the exit frees other memory.
  expect(freedAtWork(series((second) => (second < 20 ? 300 : second < 99 ? second : 2)))).toBe(
    false,
  );
});

test("with one snapshot, or none", () => {
  expect(snapshotsAtWork([])).toBe(0);
  expect(snapshotsAtWork(snapshots("1s 0"))).toBe(1);
});
