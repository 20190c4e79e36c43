/** A start hastens the next scan, and a storm of starts does not multiply scans. */
import { expect, test } from "vitest";
import { ScanPace } from "./scan_pace.js";

const MINUTE = 60_000;

/** Scans within `forMs`, if a program starts at each of these times. */
function scans(starts: readonly number[], forMs: number): number[] {
  let nowMs = 0;
  const pace = new ScanPace({ clock: () => nowMs });
  pace.begin();
  const times: number[] = [];
  let next = 0;
  for (; nowMs <= forMs; nowMs += 1) {
    for (; starts[next] === nowMs; next++) {
      pace.hasten();
    }
    if (pace.leftMs === 0) {
      times.push(nowMs);
      pace.begin();
    }
  }
  return times;
}

const every = (distanceMs: number, forMs: number) =>
  Array.from({ length: forMs / distanceMs }, (_, n) => n * distanceMs);

test("without starts, scans are regular", () => {
  expect(scans([], 10_000)).toEqual([3_000, 6_000, 9_000]);
});

test("a start is seen soon, but not before Python is loaded, and starts that follow wait for the same scan", () => {
  expect(scans([100], 5_000)).toEqual([1_000, 4_000]);
  expect(scans([1_200, 1_201, 1_202, 1_690], 2_000)).toEqual([1_700]);
});

test("a start shortly before a regular scan delays nothing", () => {
  expect(scans([2_900], 6_000)[0]).toBe(3_000);
});

test("200 starts a second for two minutes: about half as many scans again, and every distance a second or more", () => {
  const storm = scans(every(5, 2 * MINUTE), 2 * MINUTE);
  const usual = scans([], 2 * MINUTE).length;
  expect(storm.length).toBeGreaterThan(usual);
  expect(storm.length).toBeLessThanOrEqual(1.6 * usual);
  expect(storm.every((timeMs, at) => timeMs - (storm[at - 1] ?? 0) >= 1_000)).toBe(true);
});

test("after a storm, a single start is seen soon again", () => {
  const after = 3 * MINUTE + 100;
  const times = scans([...every(5, 2 * MINUTE), after], 4 * MINUTE);
  expect(times.find((timeMs) => timeMs > after)).toBeLessThanOrEqual(after + 1_500);
});

test("a wait ends with its signal, and waits leave nothing on it", async () => {
  const stop = new AbortController();
  const until = stop.signal;
  const clock = () => performance.now();
  const quick = new ScanPace({ clock, everyMs: 1 });
  for (let n = 0; n < 50; n++) {
    quick.begin();
    await quick.next(until);
  }
  // Node's own sets on the signal: its listeners, and signals that were made from it.
  const sets = Object.getOwnPropertySymbols(until).map((name): unknown => Reflect.get(until, name));
  const entries = sets.map((set) => (set as { size?: number } | null)?.size ?? 0);
  expect(Math.max(...entries)).toBeLessThan(10);
  const waited = new ScanPace({ clock, everyMs: 3_600_000 }).next(until);
  stop.abort();
  await waited;
});
