import { describe, expect, test } from "vitest";
import { noise } from "../evidence/evidence.fixture.js";
import { assessGrowth } from "./growth.js";
import type { Readings } from "./readings.js";

const MIB = 2 ** 20;
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** Readings each `step` ms; null leaves one out. */
function readings(span: number, step: number, at: (ms: number) => number | null): Readings {
  const times: number[] = [];
  const values: number[] = [];
  for (let ms = 0; ms < span; ms += step) {
    const value = at(ms);
    if (value !== null) {
      times.push(ms);
      values.push(value);
    }
  }
  return { times, values };
}

const shape = (span: number, at: (ms: number) => number | null, step = 250) =>
  assessGrowth(readings(span, step, at)).shape;

describe("a minute at four readings a second", () => {
  test("a line with noise grows, at its rate", () => {
    const growth = assessGrowth(
      readings(60_000, 250, (ms) => 50 * MIB + ms * 1000 + noise(ms) * 2 * MIB),
    );
    expect(growth.shape).toBe("growing");
    expect(growth.slope).toBeGreaterThan(900);
    expect(growth.slope).toBeLessThan(1100);
    expect(growth.low).toBeLessThan(1000);
    expect(growth.high).toBeGreaterThan(1000);
  });

  test("noise, sawtooth, start-up, steps, a filling and an emptying cache do not grow", () => {
    expect(shape(60_000, (ms) => 50 * MIB + noise(ms) * 10 * MIB)).not.toBe("growing");
    expect(shape(60_000, (ms) => 50 * MIB + (ms % 7000) * 3000)).not.toBe("growing");
    expect(shape(60_000, (ms) => Math.min(ms, 12_000) * 5000)).not.toBe("growing");
    expect(shape(60_000, (ms) => (ms < 40_000 ? 50 : 90) * MIB + noise(ms) * 1000)).toBe("stepped");
    expect(shape(60_000, (ms) => 100 * MIB * (1 - Math.exp(-ms / 8000)))).toBe("flattened");
    expect(shape(60_000, (ms) => 100 * MIB * Math.sin((Math.PI * ms) / 60_000))).not.toBe(
      "growing",
    );
  });

  test("bursts that each keep some memory count as growth; bursts that become rare do not", () => {
    const cells = (every: number, bytes: number) => (ms: number) =>
      80 * MIB + Math.floor(ms / every) * bytes + noise(ms) * 2000;
    expect(shape(60_000, cells(6000, 4 * MIB))).toBe("growing");
    expect(shape(40_000, cells(4000, 4 * MIB))).toBe("growing");
    expect(shape(60_000, cells(2500, MIB))).toBe("growing");
    const records = [0, 1000, 3000, 8000, 21_000, 30_000, 49_000];
    expect(
      shape(60_000, (ms) => (10 + 4 * records.filter((at) => at <= ms).length) * MIB + noise(ms)),
    ).not.toBe("growing");
  });

  test("a line grows if readings come at growing intervals", () => {
    const times = [
      0, 1.1, 2.2, 3.2, 4.8, 6.5, 7.7, 9, 10.4, 12, 13.9, 15.9, 18.3, 21.1, 24.1, 27.3, 31.2, 35.6,
    ];
    const growth = assessGrowth({
      times,
      values: times.map((time) => 4 + Math.floor(5 * time) * 2),
    });
    expect(growth.shape).toBe("growing");
    expect(growth.lastThird).toBeGreaterThan(0.9);
  });

  test("too few readings decide nothing", () => {
    expect(shape(2000, (ms) => ms)).toBe("short");
    expect(assessGrowth({ times: [], values: [] }).shape).toBe("short");
  });

  test("a count that rises at each of a few readings grows, although bytes would need more readings", () => {
    const times = [0, 4, 8, 12, 16, 20, 24, 28, 32].map((second) => 1000 * second);
    const rising = { times, values: [4, 100, 200, 300, 400, 500, 600, 700, 800] };
    expect(assessGrowth(rising, true).shape).toBe("growing");
    expect(assessGrowth(rising).shape).toBe("short");
    const pooled = { times, values: [4, 100, 200, 300, 400, 500, 500, 500, 500] };
    expect(assessGrowth(pooled, true).shape).toBe("short");
  });

  test("plain noise is rarely taken for growth, a line in noise nearly always", () => {
    const runs = Array.from({ length: 100 }, (_, seed) => seed * 1000 + 1);
    const grows = (rate: number) =>
      runs.filter(
        (seed) =>
          shape(60_000, (ms) => 50 * MIB + ms * rate + noise(seed + ms) * MIB) === "growing",
      ).length;
    expect(grows(0)).toBeLessThanOrEqual(16);
    expect(grows(200)).toBeGreaterThanOrEqual(95);
  });
});

describe("a week at one reading a minute", () => {
  /** Load of days: 300 MiB more at noon than at midnight; and a gap of hours. (Restarts: week.test.ts.) */
  const week = (perHour: number) => (ms: number) => {
    const gap = ms > 2.3 * DAY && ms < 2.5 * DAY;
    const load = 150 * MIB * (1 - Math.cos((2 * Math.PI * ms) / DAY));
    return gap ? null : 2048 * MIB + load + noise(ms) * 20 * MIB + (perHour * MIB * ms) / 3_600_000;
  };

  test("a daily cycle is not growth", () => {
    expect(shape(7 * DAY, week(0), MINUTE)).not.toBe("growing");
  });

  test("a slow leak under them is found, at its rate", () => {
    const growth = assessGrowth(readings(7 * DAY, MINUTE, week(2)));
    expect(growth.shape).toBe("growing");
    expect((growth.slope * 3_600_000) / MIB).toBeCloseTo(2, 0);
  });

  test("growth on a service's first day that is kept is not a leak", () => {
    const at = week(0);
    const started = (ms: number) => {
      const value = at(ms);
      return value === null ? null : value - 500 * MIB * Math.exp(-ms / (0.3 * DAY));
    };
    expect(shape(7 * DAY, started, MINUTE)).not.toBe("growing");
  });
});
