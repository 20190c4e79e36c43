import { expect, test } from "vitest";
import {
  DAY,
  diagnosisOf,
  END,
  flat,
  HOUR,
  type Life,
  MIB,
  processOf,
} from "../fleet_evidence.fixture.js";
import { didAlikeBefore, seenLives } from "./seen_lines.js";

const line = { function: "cached", file: "/srv/app/state.py", line: 52, kind: "python" as const };

test.each<[string, (hours: number) => number, number, boolean]>([
  ["a cache that filled", (hours) => 60 * (1 - Math.exp(-hours / 9)), 150, true],
  ["load that went back", (hours) => 30 * (1 - Math.cos((2 * Math.PI * hours) / 24)), 100, true],
  ["a cache that was far smaller", (hours) => 20 * (1 - Math.exp(-hours / 9)), 150, false],
  ["a leak", (hours) => 0.5 * hours, 60, false],
  ["a line that was level", () => 30, 60, false],
])("whether an earlier version did the same: %s", (_name, mibAt, riseMib, expected) => {
  // Four days, at another line of the same function.
  const lives = [0, 1].map((instance) =>
    processOf({
      ...{ instance, version: "1.0", fromDaysAgo: 7, toDaysAgo: 3 },
      ...{ mib: mibAt, lines: { cached: mibAt } },
    }),
  );
  const seen = seenLives(lives.map((process) => ({ process, rss: process.rss, work: null })));
  const rise = { rise: riseMib * MIB, level: 1e9, lengthMs: 3 * DAY };
  expect(didAlikeBefore(line, rise, seen)).toBe(expected);
  // Of a function that it never had, it shows nothing, nor does a life that was much shorter.
  expect(didAlikeBefore({ ...line, function: "remember" }, rise, seen)).toBe(false);
  expect(didAlikeBefore(line, { ...rise, lengthMs: 10 * DAY }, seen)).toBe(false);
});

test.each<[string, number, (hours: number) => number, number, boolean]>([
  ["as much", 3, () => 30, 29, true],
  ["as much, in lives of a day", 6, () => 30, 29, true],
  ["less", 3, () => 30, 40, false],
  ["as much at the end of a leak", 3, (hours) => 0.5 * hours, 29, false],
  ["as much, in lives of half a day", 6.5, () => 30, 29, false],
])("whether an earlier version held as much: %s", (_name, toDaysAgo, mibAt, levelMib, expected) => {
  const life = { instance: 0, version: "1.0", fromDaysAgo: 7, toDaysAgo };
  const process = processOf({ ...life, mib: mibAt, lines: { cached: mibAt } });
  const seen = seenLives([{ process, rss: process.rss, work: null }]);
  const risen = { rise: 1e9, level: levelMib * MIB, lengthMs: 3 * DAY };
  expect(didAlikeBefore(line, risen, seen)).toBe(expected);
});

test("a line that rises for three days is no leak if an earlier version's rose as far and fell again", () => {
  /** Up and down within a week; up for the last three days. */
  const weekly = (time: number) => {
    const days = (((time - END) / DAY + 3.2) % 7) + 7;
    return 8 * Math.min(days % 7, 7 - (days % 7));
  };
  const lives = (before: (time: number) => number) =>
    [0, 1, 2].flatMap((instance): Life[] => {
      const at = (from: number, mibAt: (time: number) => number) => (hours: number) =>
        mibAt(END - from * DAY + hours * HOUR);
      return [
        {
          ...{ version: "1.0", instance, fromDaysAgo: 13, toDaysAgo: 3, mib: flat },
          lines: { work: at(13, before) },
        },
        {
          ...{ version: "1.1", instance, fromDaysAgo: 3, mib: at(3, weekly) },
          lines: { work: at(3, weekly) },
        },
      ];
    });
  expect(diagnosisOf(lives(() => 14)).verdict.kind).toBe("python-leak");
  expect(diagnosisOf(lives(weekly)).verdict.kind).not.toBe("python-leak");
});
