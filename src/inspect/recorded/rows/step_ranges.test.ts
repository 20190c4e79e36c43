import { describe, expect, it } from "vitest";
import { profileOf } from "../../../model/profile/profile.fixture.js";
import type { Profile } from "../../../model/profile/profile.js";
import type { TimelineEvent } from "../../../model/profile/series.js";
import { stepsOf } from "./step_ranges.js";

const START_MS = 1_700_000_000_000;
const SLICE_MS = 1000;

/** A snapshot after `bytes.length` slices of a second each; `bytes`: the live bytes of one site that were allocated in each. */
function lookWith(bytes: readonly number[], label = " label=step:train"): Profile {
  const total = bytes.reduce((sum, each) => sum + each, 0);
  const profile = profileOf(`main;train ${total} variance=${total * 1000}${label}`);
  const cohortBytes = Float64Array.from(bytes);
  return {
    ...profile,
    timeMs: START_MS + bytes.length * SLICE_MS,
    cohorts: bytes.map((_, slice) => START_MS + (slice + 1) * SLICE_MS),
    sites: { ...profile.sites, cohortBytes },
  };
}

/** Consecutive steps, each of `lengthMs`. */
function steps(count: number, lengthMs: number, fromMs = 0): TimelineEvent[] {
  return Array.from({ length: count }, (_, index): TimelineEvent[] => {
    const beginMs = START_MS + fromMs + index * lengthMs;
    const about = { pid: 42, detail: "train", value: index + 1 };
    return [
      { ...about, kind: "step-begin", timeMs: beginMs },
      { ...about, kind: "step-end", timeMs: beginMs + lengthMs },
    ];
  }).flat();
}

describe("stepsOf", () => {
  it("is null for a program that marks no steps", () => {
    expect(stepsOf([], lookWith([100]))).toBeNull();
  });

  it("has a range for each slice of allocation time, and the bytes that each step leaves", () => {
    const found = stepsOf(steps(80, 100), lookWith(Array(8).fill(5000)));
    expect(found?.ranges.map(({ firstStep, lastStep }) => [firstStep, lastStep])).toEqual(
      Array.from({ length: 8 }, (_, slice) => [slice * 10 + 1, slice * 10 + 10]),
    );
    expect(found?.ranges.every(({ bytesPerStep }) => bytesPerStep === 500)).toBe(true);
    expect(found?.left).toMatchObject([{ name: "train", firstStep: 31, bytesPerStep: 500 }]);
    expect(found?.left[0]?.isNoise).toBe(false);
  });

  it("keeps steps longer than a slice separate", () => {
    const found = stepsOf(steps(2, 2000), lookWith([10, 20, 30, 40]));
    expect(found?.ranges).toMatchObject([
      { firstStep: 1, lastStep: 1, liveBytes: 30 },
      { firstStep: 2, lastStep: 2, liveBytes: 70 },
    ]);
  });

  it("splits a slice between the continuing step and those that begin in it", () => {
    const found = stepsOf(steps(2, 1500), lookWith([100, 100, 100]));
    expect(found?.ranges.map(({ liveBytes }) => liveBytes)).toEqual([150, 150]);
  });

  it("counts steps whose events were lost by their numbers", () => {
    const some = steps(40, 100).filter(({ value = 0 }) => value % 10 < 6);
    const found = stepsOf(some, lookWith(Array(4).fill(1000)));
    expect(found?.ranges.map(({ firstStep, lastStep }) => [firstStep, lastStep])).toEqual([
      [1, 10],
      [11, 20],
      [21, 30],
      [31, 40],
    ]);
  });

  it("calls it noise if older steps have left nothing: a cache of the latest steps", () => {
    const found = stepsOf(steps(80, 100), lookWith([0, 0, 0, 0, 0, 0, 0, 9000]));
    expect(found?.left).toMatchObject([{ bytesPerStep: 0, isNoise: true }]);
  });

  it("counts the whole process if steps set no label, and only labelled rows otherwise", () => {
    const bare = stepsOf(steps(10, 100), lookWith([700], ""));
    expect(bare?.ranges).toMatchObject([{ liveBytes: 700 }]);
    const others = profileOf(`
      main;train 10 label=step:train
      main;serve 90
    `);
    const found = stepsOf(steps(1, 100, -1000), { ...others, timeMs: others.timeMs });
    expect(found?.ranges).toMatchObject([{ liveBytes: 10 }]);
  });
});
