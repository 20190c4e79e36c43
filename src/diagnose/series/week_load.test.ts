/** A service whose load is low at the weekend, recorded for five days. */
import { expect, test } from "vitest";
import { noise } from "../evidence/evidence.fixture.js";
import { assessGrowth, isFirm } from "./growth.js";

const MIB = 2 ** 20;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SATURDAY = Date.UTC(2026, 2, 21);

/** `weekend`: its load as a share of a weekday's. */
function fiveDays(startMs: number, mibPerHour: number, weekend = 0.2) {
  const times: number[] = [];
  const values: number[] = [];
  for (let time = startMs; time < startMs + 5 * DAY; time += 300_000) {
    const isWeekend = new Date(time).getUTCDay() % 6 === 0;
    const wave = 60 * (1 - Math.cos((2 * Math.PI * time) / DAY)) * (isWeekend ? weekend : 1);
    times.push(time);
    values.push(
      MIB * (400 + wave + 4 * noise(time / 1e5) + (mibPerHour * (time - startMs)) / HOUR),
    );
  }
  return { times, values };
}

test.each([
  [0, 0.2],
  [0, 0.5],
  [1, 0.2],
  [1, 0.5],
  [2, 0.5],
])(
  "five days from Friday + %i days on, with a weekend's load of %d, do not grow",
  (days, weekend) => {
    const growth = assessGrowth(fiveDays(SATURDAY - DAY + days * DAY, 0, weekend));
    expect(growth.shape).toBe("flat");
    expect(Math.abs(growth.slope * HOUR) / MIB).toBeLessThan(0.05);
    expect(isFirm(growth)).toBe(false);
  },
);

test("a leak over a weekend grows, at its rate", () => {
  const growth = assessGrowth(fiveDays(SATURDAY, 1.5));
  expect(growth.shape).toBe("growing");
  expect((growth.slope * HOUR) / MIB).toBeCloseTo(1.5, 1);
});
