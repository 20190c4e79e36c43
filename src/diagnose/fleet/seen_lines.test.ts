import { expect, test } from "vitest";
import { DAY, diagnosisOf, END, HOUR, type Life, MIB, processOf } from "./fleet_evidence.fixture.js";
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
  const rise = { rise: riseMib * MIB, lengthMs: 3 * DAY };
  expect(didAlikeBefore(line, rise, seen)).toBe(expected);
  // Of a function that it never had, it shows nothing, nor does a life that was much shorter.
  expect(didAlikeBefore({ ...line, function: "remember" }, rise, seen)).toBe(false);
  expect(didAlikeBefore(line, { ...rise, lengthMs: 10 * DAY }, seen)).toBe(false);
});

test("a line for the load that rises for days is no leak if an earlier version's rose as far", () => {
  // Week by week, so that three days of it look like growth.
  const weekly = (time: number) =>
    20 * (1 - Math.cos((2 * Math.PI * (time - END + 3.5 * DAY)) / (7 * DAY)));
  const life = (version: string, instance: number, from: number, to: number | null): Life => {
    const mibAt = (hours: number) => weekly(END - from * DAY + hours * HOUR);
    return {
      ...{ version, instance, fromDaysAgo: from, mib: mibAt, lines: { work: mibAt } },
      ...(to === null ? {} : { toDaysAgo: to }),
    };
  };
  const lives = (isSeen: boolean) =>
    [0, 1, 2].flatMap((instance) => {
      const { lines, ...old } = life("1.0", instance, 12, 3);
      return [isSeen && lines ? { ...old, lines } : old, life("1.1", instance, 3, null)];
    });
  expect(diagnosisOf(lives(false)).verdict.kind).toBe("python-leak");
  expect(diagnosisOf(lives(true)).verdict.kind).not.toBe("python-leak");
});
