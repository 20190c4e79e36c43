import { describe, expect, test } from "vitest";
import type { AllocatorName, AllocatorTrialJson } from "../model/documents/allocators_document.js";
import { recommend } from "./changes.js";

type Interval = readonly [value: number, low: number, high: number];
const change = ([value, low, high]: Interval) => ({ value, low, high });

/** A setting whose steady RSS and CPU time change by these fractions, with their intervals. */
function trial(allocator: AllocatorName, steady: Interval, cpu: Interval): AllocatorTrialJson {
  const bytes = 100 * (1 + steady[0]) * 2 ** 20;
  return {
    ...{ allocator, title: allocator, loaded: true, proof: "", runs: [], use: "" },
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
    expect(sentence).toMatch(/^No difference is proven: arenas .*more rounds/);
  });

  test("no claim of no difference while one setting may differ", () => {
    const { sentence } = recommend([
      glibc,
      trial("arenas", [-0.02, -0.025, -0.01], free),
      trial("trim", [-0.01, -0.5, 0.9], free),
    ]);
    expect(sentence).toMatch(/^No difference is proven: trim .*runs differ too much/);
  });

  test("no cost in CPU time that is not proven", () => {
    const saves: Interval = [-0.6, -0.7, -0.5];
    const costs = recommend([glibc, trial("trim", saves, [0.3, 0.2, 0.4])]);
    expect(costs).toMatchObject({
      best: null,
      sentence: expect.stringMatching(/^Keep glibc: trim/),
    });
    const may = recommend([glibc, trial("trim", saves, [0.2, -0.1, 0.6])]);
    expect(may).toMatchObject({
      best: null,
      sentence: expect.stringMatching(/^No setting is recommended: trim saves .*uncertain.*rounds/),
    });
  });

  test("that nothing changes, if every interval is narrow", () => {
    const { best, sentence } = recommend([glibc, trial("jemalloc", [0.1, 0.08, 0.12], free)]);
    expect(best).toBeNull();
    expect(sentence).toMatch(/makes no difference worth a change/);
  });
});
