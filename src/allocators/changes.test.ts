import { describe, expect, test } from "vitest";
import type { AllocatorName, AllocatorTrialJson } from "../model/documents/allocators_document.js";
import { isDecided, recommend } from "./changes.js";

type Interval = readonly [value: number, low: number, high: number];
const change = ([value, low, high]: Interval) => ({ value, low, high });

/** A setting whose steady RSS and CPU time change by these fractions, with their intervals. */
function trial(allocator: AllocatorName, steady: Interval, cpu: Interval): AllocatorTrialJson {
  const bytes = 100 * (1 + steady[0]) * 2 ** 20;
  return {
    ...{ allocator, title: allocator, loaded: true, proof: "", runs: [], use: "", deploy: "" },
    ...{ peakRssBytes: bytes, steadyRssBytes: bytes, liveBytes: null, cpuMs: 1, wallMs: 1 },
    ...(allocator === "glibc" ? {} : { steadyChange: change(steady), cpuChange: change(cpu) }),
  };
}

const glibc = trial("glibc", [0, 0, 0], [0, 0, 0]);
const free: Interval = [0, -0.02, 0.02];

describe("recommend", () => {
  test("the first of settings that save about the same, and names the others", () => {
    const { best, sentence } = recommend([
      glibc,
      trial("arenas", [-0.3, -0.33, -0.27], free),
      trial("jemalloc", [-0.31, -0.33, -0.29], free),
      trial("tcmalloc", [-0.1, -0.12, -0.08], free),
    ]);
    expect(best).toBe("arenas");
    expect(sentence).toMatch(/^Use arenas: .*-33 to -27 %.* About the same saving: jemalloc\.$/);
  });

  test("nothing whose saving is not proven", () => {
    const { best, sentence } = recommend([glibc, trial("arenas", [-0.3, -0.8, 1.1], free)]);
    expect(best).toBeNull();
    expect(sentence).toMatch(/^Keep glibc, or measure again: arenas may .*-80 to \+110 %/);
  });

  test("no saving that is lost in the differences between runs", () => {
    const { best, sentence } = recommend([
      glibc,
      trial("arenas", [-0.02, -0.025, -0.01], free),
      trial("trim", [-0.01, -0.5, 0.9], free),
    ]);
    expect(best).toBeNull();
    expect(sentence).toMatch(/^Keep glibc: no setting makes a measurable saving.* trim varies/);
  });

  test("a saving whose cost in CPU time is not proven, with the cost that may be", () => {
    const saves: Interval = [-0.6, -0.7, -0.5];
    expect(recommend([glibc, trial("trim", saves, [0.3, 0.2, 0.4])])).toMatchObject({
      best: null,
      sentence: expect.stringMatching(/^Keep glibc: trim saves memory .* but costs CPU time/),
    });
    // The same decision whether the measured change is above or below the limit.
    for (const value of [0.07, 0.15]) {
      expect(recommend([glibc, trial("trim", saves, [value, -0.26, 0.6])])).toMatchObject({
        best: "trim",
        sentence: expect.stringMatching(/^Use trim: .*smaller than the differences between runs/),
      });
    }
    expect(recommend([glibc, trial("trim", saves, [0.05, 0.02, 0.08])]).sentence).toMatch(
      /CPU time changes by \+5 %/,
    );
  });

  test("that nothing changes, if every interval is narrow", () => {
    const { best, sentence } = recommend([glibc, trial("jemalloc", [0.1, 0.08, 0.12], free)]);
    expect(best).toBeNull();
    expect(sentence).toMatch(/makes no difference worth a change/);
  });
});

describe("isDecided", () => {
  const saves: Interval = [-0.6, -0.7, -0.5];
  test.each<[string, Interval, Interval, boolean]>([
    ["a saving at no cost", saves, free, true],
    ["a saving at a high cost", saves, [0.5, 0.3, 0.7], true],
    ["a saving at an unknown cost", saves, [0.1, -0.2, 0.4], false],
    ["no saving, whatever it costs", [0.1, 0.05, 0.2], [0.1, -0.2, 0.4], true],
    ["a saving that is not proven", [-0.1, -0.3, 0.1], free, false],
  ])("%s", (_, steady, cpu, expected) => {
    expect(isDecided(trial("trim", steady, cpu))).toBe(expected);
  });
});
