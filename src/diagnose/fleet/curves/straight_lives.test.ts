import { expect, test } from "vitest";
import { type Life, MIB, processOf } from "../fleet_evidence.fixture.js";
import { straightLives } from "./straight_lives.js";

const LIMIT = 1000 * MIB;
const HOUR_MS = 3_600_000;
const livesOf = (instances: number, mib: Life["mib"]) =>
  Array.from({ length: instances }, (_, instance) => {
    const process = processOf({ instance, version: "1.0", fromDaysAgo: 1, mib });
    return { process, rss: process.rss, work: null };
  });

test("lives that all rise in a straight line by a third of the limit leak at their median rate", () => {
  const found = straightLives(
    livesOf(3, (hours) => 20 * hours),
    LIMIT,
  );
  expect(((found?.rate ?? 0) * HOUR_MS) / MIB).toBeCloseTo(20, -1);
  // A service of one instance has no more.
  expect(
    straightLives(
      livesOf(1, (hours) => 20 * hours),
      LIMIT,
    ),
  ).not.toBeNull();
});

test("lives that rise by less, that bend, or most of which do not rise, show no leak", () => {
  expect(
    straightLives(
      livesOf(3, (hours) => 8 * hours),
      LIMIT,
    ),
  ).toBeNull();
  expect(
    straightLives(
      livesOf(3, (hours) => 480 * (1 - Math.exp(-hours / 6))),
      LIMIT,
    ),
  ).toBeNull();
  const some = [...livesOf(3, (hours) => 20 * hours), ...livesOf(3, () => 0)];
  expect(straightLives(some, LIMIT)).toBeNull();
});

test("where no limit is known, lives that rise to three times their level after start-up leak", () => {
  expect(
    straightLives(
      livesOf(3, (hours) => 40 * hours),
      0,
    ),
  ).not.toBeNull();
  expect(
    straightLives(
      livesOf(3, (hours) => 20 * hours),
      0,
    ),
  ).toBeNull();
  expect(
    straightLives(
      livesOf(3, (hours) => 960 * (1 - Math.exp(-hours / 6))),
      0,
    ),
  ).toBeNull();
});

test("a long life that rose by half of the limit and gave nothing back leaks, although it paused at night", () => {
  const livesFor = (days: number, mib: Life["mib"]) =>
    [0, 1, 2].map((instance) => {
      const process = processOf({ instance, version: "1.0", fromDaysAgo: days, mib });
      return { process, rss: process.rss, work: null };
    });
  const paused = (hours: number) => 140 + 20 * Math.min(hours, 8) + 24 * Math.max(0, hours - 20);
  expect(straightLives(livesFor(1.5, paused), LIMIT)).not.toBeNull();
  const givesBack = (hours: number) => paused(hours) - (hours > 25 && hours < 30 ? 200 : 0);
  expect(straightLives(livesFor(1.5, givesBack), LIMIT)).toBeNull();
});

test("lives that rise faster and faster until the kernel kills them follow the requests of their day, and leak", () => {
  const grown = (hours: number) => 660 * (hours / 24) ** 2;
  expect(straightLives(livesOf(3, grown), LIMIT)).not.toBeNull();
  expect(
    straightLives(
      livesOf(3, (hours) => 0.8 * grown(hours)),
      LIMIT,
    ),
  ).toBeNull();
});

test("load that is higher on the last day at its peak is no straight line", () => {
  const load = (hours: number) => 200 * (1 - Math.cos((2 * Math.PI * hours) / 60));
  const lives = [0, 1, 2].map((instance) => {
    const process = processOf({ instance, version: "1.0", fromDaysAgo: 3.75, mib: load });
    return { process, rss: process.rss, work: null };
  });
  expect(straightLives(lives, LIMIT)).toBeNull();
});
