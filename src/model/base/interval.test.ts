/**
 * Checks that intervals contain the true value as often as they claim, on programs of known size that are sampled like
 * the agent samples.
 */
import { describe, expect, test } from "vitest";
import { interval95, unseenUpToBytes } from "./interval.js";

const RUNS = 20_000;
/** Standard errors of a share of RUNS: a right interval misses this bound once in ten million seeds. */
const SLACK = 5.2;

/** xorshift, so that every run of the test is the same. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) + 0.5) / 2 ** 32;
  };
}

interface Mix {
  readonly name: string;
  readonly period: number;
  /** Bytes of the objects, and how many there are of each. */
  readonly objects: readonly (readonly [bytes: number, count: number])[];
  /** Sampled at the period, then thinned to this one. */
  readonly thinnedTo?: number;
}

const mixes: readonly Mix[] = [
  ...[1, 2, 4, 7, 10, 15, 25, 60].map((samples) => ({
    name: `${samples} expected samples of small objects`,
    period: 65_536,
    objects: [[1024, samples * 64]] as const,
  })),
  { name: "objects of half a period", period: 65_536, objects: [[32_768, 24]] },
  { name: "objects of a period", period: 65_536, objects: [[65_536, 12]] },
  {
    name: "sizes far apart",
    period: 65_536,
    objects: [
      [2000, 200],
      [30_000, 10],
      [150_000, 3],
    ],
  },
  { name: "thinned", period: 16_384, objects: [[4096, 200]], thinnedTo: 65_536 },
];

/** Estimate and variance of one run, as agent/src/live/site.c adds them up. */
function sample({ objects, period, thinnedTo = period }: Mix, random: () => number) {
  let bytes = 0;
  let variance = 0;
  for (const [size, count] of objects) {
    const first = -Math.expm1(-size / period);
    const chance = -Math.expm1(-size / thinnedTo);
    const weighed = size / chance;
    for (let i = 0; i < count; i++) {
      if (random() > first || random() > chance / first) {
        continue;
      }
      bytes += weighed;
      variance += (1 - chance) * weighed ** 2;
    }
  }
  return { bytes, standardError: Math.sqrt(variance) };
}

function shareHeld(mix: Mix): number {
  const truth = mix.objects.reduce((sum, [size, count]) => sum + size * count, 0);
  const random = generator(20_240_607);
  let held = 0;
  for (let run = 0; run < RUNS; run++) {
    const { bytes, standardError } = sample(mix, random);
    const { low, high } =
      bytes === 0
        ? { low: 0, high: unseenUpToBytes(mix.thinnedTo ?? mix.period) }
        : interval95(bytes, standardError);
    if (low <= truth && truth <= high) {
      held++;
    }
  }
  return held / RUNS;
}

describe("a 95 % interval contains the true value", () => {
  test.each(mixes.map((mix) => [mix.name, mix] as const))("%s", (_name, mix) => {
    const share = shareHeld(mix);
    expect(share).toBeGreaterThan(0.95 - SLACK * Math.sqrt((0.95 * 0.05) / RUNS));
    // An interval that contains everything is not informative.
    expect(share).toBeLessThan(0.995);
  });
});

test("equal weights give Garwood's interval of a Poisson count", () => {
  // n, and half the chi-square quantiles of 2 n and 2 n + 2 degrees, from tables.
  for (const [count, low, high] of [
    [1, 0.0253, 5.572],
    [5, 1.623, 11.668],
    [10, 4.795, 18.39],
    [50, 37.11, 65.92],
  ] as const) {
    const interval = interval95(count * 1000, Math.sqrt(count) * 1000);
    expect(Math.abs(interval.low / 1000 - low)).toBeLessThan(0.02 * count);
    expect(Math.abs(interval.high / 1000 / high - 1)).toBeLessThan(0.01);
  }
});

test("an exact value has an interval of zero width, and many samples the normal interval", () => {
  expect(interval95(5000, 0)).toEqual({ low: 5000, high: 5000 });
  expect(interval95(0, 0)).toEqual({ low: 0, high: 0 });
  const { low, high } = interval95(1e9, 1e6);
  expect((1e9 - low) / 1e6).toBeCloseTo(1.96, 2);
  expect((high - 1e9) / 1e6).toBeCloseTo(1.96, 2);
});
