import { expect, test } from "vitest";
import { DAY, END, HOUR, MIB, processOf } from "../fleet_evidence.fixture.js";
import { risesFromDayToDay, risesInEachLife } from "./same_hour.js";

const curveOf = (days: number, mib: (hours: number) => number) => {
  const hours = Array.from({ length: 24 * days + 1 }, (_, hour) => hour);
  return { times: hours.map((hour) => hour * HOUR), values: hours.map((hour) => MIB * mib(hour)) };
};
const wave = (hours: number) => 30 * Math.sin((2 * Math.PI * hours) / 24);

test("a slow leak raises nearly every hour of the day, however far the load moves memory within a day", () => {
  expect(risesFromDayToDay(curveOf(3, (hours) => wave(hours) + 0.2 * hours))).toBe(true);
  expect(risesFromDayToDay(curveOf(3, wave))).toBe(false);
});

test("a day with more load does not raise nearly every hour, and within two days nothing is known", () => {
  const busier = (hours: number) => wave(hours) * (hours > 48 ? 1.5 : 1);
  expect(risesFromDayToDay(curveOf(3, busier))).toBe(false);
  expect(risesFromDayToDay(curveOf(1, (hours) => 5 * hours))).toBe(false);
});

/** Restarted every day, without the daily load of the fixture. */
const lives = (mib: (hours: number) => number, days = 4) =>
  Array.from({ length: days }, (_, day) =>
    [0, 1].map((instance) => {
      const process = processOf({
        ...{ instance, version: "1.0", fromDaysAgo: day + 1, toDaysAgo: day },
        mib,
      });
      const load = (time: number) => 20 * MIB * (1 - Math.cos((2 * Math.PI * time) / DAY));
      const values = process.rss.values.map(
        (value, at) => value - load(process.rss.times[at] ?? END),
      );
      return { process, rss: { times: process.rss.times, values }, work: null };
    }),
  ).flat();

test("lives of several days that all rise alike", () => {
  const grown = (hours: number) => hours;
  expect(risesInEachLife(lives(grown), DAY, false)).toBe(true);
  expect(
    risesInEachLife(
      lives(() => 0),
      DAY,
      true,
    ),
  ).toBe(false);
  // Of one day, which may have been busy.
  expect(risesInEachLife([...lives(grown, 1), ...lives(grown, 1)], DAY, false)).toBe(false);
  expect(risesInEachLife([...lives(grown, 1), ...lives(grown, 1)], DAY, true)).toBe(true);
  const some = [...lives(grown), ...lives(() => 0).slice(0, 3)];
  expect(risesInEachLife(some, DAY, true)).toBe(false);
});
