import { describe, expect, it } from "vitest";
import { type Course, growthBetween, growthIn, withReading } from "./measured_growth.js";

const MIB = 2 ** 20;
const HOUR = 3_600_000;

function courseOf(polls: number, rssAt: (second: number) => number): Course {
  let course: Course | undefined;
  for (let second = 0; second < polls; second++) {
    course = withReading(course, second * 1000, rssAt(second));
  }
  return course as Course;
}

describe("growth in a live view", () => {
  it("is measured over the whole time, from a bounded number of readings", () => {
    const course = courseOf(5000, (second) => 100 * MIB + second * 4096);
    expect(course.timesMs.length).toBeLessThanOrEqual(64);
    expect(course.timesMs[0]).toBe(0);
    expect(course.timesMs.at(-1)).toBeGreaterThan(4_800_000);
    const { growthBytesPerHour = 0, minRssBytes, baselineRssBytes = 0 } = growthIn(course);
    expect(growthBytesPerHour / (4096 * 3600)).toBeCloseTo(1, 2);
    expect(minRssBytes).toBe(100 * MIB);
    expect(baselineRssBytes).toBeGreaterThan(105 * MIB);
  });

  it("is not reported after a few readings, but the minimum is", () => {
    expect(growthIn(courseOf(4, (second) => (9 - second) * MIB))).toEqual({ minRssBytes: 6 * MIB });
    expect(growthIn(courseOf(1, () => MIB))).toEqual({});
  });

  it("keeps a minimum that was thinned out", () => {
    const course = courseOf(1000, (second) => (second === 501 ? 7 : 50) * MIB);
    expect(growthIn(course).minRssBytes).toBe(7 * MIB);
  });
});

it("two readings give a rate if they are a minute apart and differ by a mebibyte", () => {
  expect(growthBetween(6 * MIB, HOUR / 10)).toEqual({ growthBytesPerHour: 60 * MIB });
  expect(growthBetween(6 * MIB, 5000)).toEqual({});
  expect(growthBetween(4096, HOUR)).toEqual({});
});
