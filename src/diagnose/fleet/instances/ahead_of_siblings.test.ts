import { expect, test } from "vitest";
import type { Unloaded } from "../curves/load_removal.js";
import { DAY, END, type Life, MIB, processOf } from "../fleet_evidence.fixture.js";
import {
  areMostLivesAhead,
  fillsAgain,
  highestLevels,
  isAhead,
  risesIn,
} from "./ahead_of_siblings.js";

const lifeOf = (life: Omit<Life, "version">) => {
  const process = processOf({ version: "1.0", ...life });
  return { process, rss: process.rss, work: null };
};
const window = { startMs: END - 3.5 * DAY, endMs: END };
const rate = (mib: number) => (mib * MIB) / (3.5 * DAY);
const perMs = (10 * MIB) / (DAY / 24);
/** The week begins after two days. */
const week = (mib: number) => (hours: number) => (hours < 50 ? 2 : mib);
const siblings = [0, 1, 2, 4, 5].map((instance) =>
  lifeOf({ instance, fromDaysAgo: 3.5, mib: week(24) }),
);
const isAheadOf = (others: readonly Unloaded[], own: readonly Unloaded[], perMs: number) =>
  isAhead(own, perMs, window, risesIn([...own, ...others], window));
const fillsAsBefore = (own: readonly Unloaded[], others: readonly Unloaded[]) =>
  fillsAgain(own, perMs, highestLevels([...own, ...others]));

test("an instance that follows the load more closely than its siblings is not ahead of them by a leak", () => {
  const own = [lifeOf({ instance: 3, fromDaysAgo: 3.5, mib: week(28) })];
  expect(isAheadOf(siblings, own, rate(17))).toBe(false);
});

test("an instance that grows only in what is left without its load is not ahead of its siblings", () => {
  const own = lifeOf({ instance: 3, fromDaysAgo: 3.5, mib: week(24) });
  const { times, values } = own.rss;
  const left = values.map((value, at) => value + (17 * MIB * at) / values.length);
  expect(isAheadOf(siblings, [{ ...own, rss: { times, values: left } }], rate(17))).toBe(false);
});

test("an instance that leaks is ahead of its siblings by what it leaked", () => {
  const mib = (hours: number) => week(24)(hours) + (17 / 84) * hours;
  const own = [lifeOf({ instance: 3, fromDaysAgo: 3.5, mib })];
  expect(isAheadOf(siblings, own, rate(17))).toBe(true);
  // Nothing is known about one that was restarted.
  const restarted = lifeOf({ instance: 3, fromDaysAgo: 1, mib: week(28) });
  expect(isAheadOf(siblings, [restarted], rate(17))).toBe(true);
});

test("an instance fills its cache again unless a life of it came to have more memory than its siblings", () => {
  const fills = (mib: number) => (hours: number) => mib * (1 - Math.exp(-hours / 7));
  const full = [0, 1, 2].map((instance) => lifeOf({ instance, fromDaysAgo: 3.5, mib: fills(300) }));
  const lives = (mib: (hours: number) => number) => [
    lifeOf({ instance: 3, fromDaysAgo: 1, toDaysAgo: 0.5, mib }),
    lifeOf({ instance: 3, fromDaysAgo: 0.5, mib: fills(300) }),
  ];
  expect(fillsAsBefore(lives(fills(300)), full)).toBe(true);
  expect(
    fillsAsBefore(
      lives((hours) => fills(300)(hours) + 10 * hours),
      full,
    ),
  ).toBe(false);
  // One that was never restarted does not.
  expect(fillsAsBefore(lives(fills(300)).slice(1), full)).toBe(false);
  // Short lives of siblings do not make it odd that it filled its cache.
  const ended = [0, 1, 2].map((instance) =>
    lifeOf({ instance, fromDaysAgo: 3.7, toDaysAgo: 3.5, mib: () => 40 }),
  );
  expect(fillsAsBefore(lives(fills(310)), [...full, ...ended])).toBe(true);
});

test("an instance is ahead if most of its lives rose further than its siblings did at the same ages", () => {
  const others = [0, 1, 2].map((instance) =>
    lifeOf({ instance, fromDaysAgo: 3.5, mib: (hours) => 3 * Math.min(hours, 6) }),
  );
  const [grows, fills] = [(hours: number) => 10 * hours, (hours: number) => 3 * Math.min(hours, 6)];
  const lives = (...courses: ((hours: number) => number)[]) =>
    courses.map((mib, at) =>
      lifeOf({ instance: 3, fromDaysAgo: 3 - at, ...(at < 2 ? { toDaysAgo: 2 - at } : {}), mib }),
    );
  expect(areMostLivesAhead(lives(grows, grows, fills), others, perMs)).toBe(true);
  expect(areMostLivesAhead(lives(fills, grows, fills), others, perMs)).toBe(false);
  // Siblings that have just started show nothing.
  const young = [0, 1, 2].map((instance) =>
    lifeOf({ instance, fromDaysAgo: 1 / 24, mib: () => 0 }),
  );
  expect(areMostLivesAhead(lives(fills, grows, fills), young, perMs)).toBe(true);
});

test("an instance need not have grown before the window of its rate", () => {
  const others = [0, 1, 2].map((instance) => lifeOf({ instance, fromDaysAgo: 12, mib: () => 0 }));
  const mib = (hours: number) => 2 * Math.max(0, hours - 8 * 24);
  const own = [lifeOf({ instance: 3, fromDaysAgo: 12, mib })];
  const perWindow = (1.6 * MIB) / (DAY / 24);
  expect(areMostLivesAhead(own, others, perWindow, 5 * DAY)).toBe(true);
  expect(areMostLivesAhead(others.slice(0, 1), others, perWindow, 5 * DAY)).toBe(false);
});
