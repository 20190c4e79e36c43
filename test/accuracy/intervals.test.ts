/**
 * Checks Tidemark's stated errors on hundreds of lines of known size: the estimates must be
 * unbiased, their scatter must be the stated one, and 95 % intervals must contain the truth in
 * 95 % of cases, line by line, however few samples a line has. A correct implementation misses
 * each bound less than once in a million runs.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { interval95, unseenUpToBytes } from "../../src/model/base/interval.js";
import type { Profile } from "../../src/model/profile/profile.js";
import { anyInterpreter, environment } from "../environment.js";
import { programs, record, removeScratch, scratch } from "../run.js";
import { bytesByLine, type Figure, type KnownSite, placeOf, truthIn } from "../truth.js";

const SITES = 240;
const BYTES_EACH = 400_000;
/** For the totals, so that nothing passes with errors as large as the figures. */
const LEAST_SAMPLES = 200;
afterAll(removeScratch);

interface Compared {
  readonly estimate: number;
  readonly difference: number;
  readonly variance: number;
  readonly exact: number;
}

function compared(profile: Profile, sites: readonly KnownSite[], figure: Figure): Compared[] {
  const lines = bytesByLine(profile, figure);
  return sites.map((known) => {
    const { bytes, standardError } = lines.get(placeOf(known)) ?? { bytes: 0, standardError: 0 };
    return {
      estimate: bytes,
      difference: bytes - known.liveBytes,
      variance: standardError ** 2,
      exact: known.liveBytes,
    };
  });
}

function sum(parts: readonly Compared[]): Compared {
  return parts.reduce((total, part) => ({
    estimate: total.estimate + part.estimate,
    difference: total.difference + part.difference,
    variance: total.variance + part.variance,
    exact: total.exact + part.exact,
  }));
}

/** The number of samples that would give this error. */
function samplesBehind({ exact, variance }: Compared): number {
  return exact ** 2 / variance;
}

/** The number of successes in `tries` that is undercut only once in ten million times. */
function unlikelyFew(tries: number, probability: number): number {
  let chance = (1 - probability) ** tries;
  let total = chance;
  let successes = 0;
  while (total < 1e-7) {
    chance *= ((tries - successes) / (successes + 1)) * (probability / (1 - probability));
    successes++;
    total += chance;
  }
  return successes - 1;
}

/** A line without a sample states no error; it is checked against the bound for unseen memory. */
function holds({ estimate, variance, exact }: Compared, periodBytes: number): boolean {
  const { low, high } =
    estimate > 0
      ? interval95(estimate, Math.sqrt(variance))
      : { low: 0, high: unseenUpToBytes(periodBytes) };
  return low <= exact && exact <= high;
}

function expectHonest(parts: readonly Compared[], periodBytes: number): void {
  const total = sum(parts);
  const samples = samplesBehind(total);
  expect(samples, "samples").toBeGreaterThan(LEAST_SAMPLES);

  const lean = total.difference / Math.sqrt(total.variance);
  expect(Math.abs(lean), `leans by ${lean} standard errors`).toBeLessThan(5.4);

  // Both are unbiased estimates of the same scatter, however few samples a site has; they themselves
  // scatter like squares of counts.
  const scatter = parts.reduce((all, { difference }) => all + difference ** 2, 0) / total.variance;
  const tolerance = 6 * Math.sqrt(2 / parts.length + 2 / samples);
  expect(Math.abs(scatter - 1), `scatter ${scatter} of the stated`).toBeLessThan(tolerance);

  const held = parts.filter((part) => holds(part, periodBytes));
  const share = `${held.length} of ${parts.length} intervals hold`;
  expect(held.length, share).toBeGreaterThan(unlikelyFew(parts.length, 0.95));
}

const oldest =
  environment.interpreters.find(({ chroot, freeThreaded }) => !chroot && !freeThreaded) ??
  anyInterpreter();
const tested = new Map([oldest, anyInterpreter()].map(({ version, path }) => [version, path]));

describe.each([...tested])("Python %s", (_version, python) => {
  let sites: readonly KnownSite[];
  let profile: Profile;
  let periodBytes: number;

  beforeAll(async () => {
    const arguments_ = [String(SITES), String(BYTES_EACH), join(scratch(), "sites.py")];
    const outcome = await record([python, join(programs, "many_sites.py"), ...arguments_], {
      options: ["--period", "16K"],
    });
    expect(outcome.status, outcome.stderr).toBe(0);
    sites = truthIn(outcome.stdout).sites;
    const recording = outcome.open();
    expect(recording.limits).toEqual([]);
    profile = recording.profileAt("end");
    periodBytes = (await outcome.summary()).agent.periodBytes;
  });

  test("live bytes", () => expectHonest(compared(profile, sites, "live"), periodBytes));

  test("allocated bytes of kept and of temporary objects", () => {
    expectHonest(compared(profile, sites, "allocated"), periodBytes);
    const temporaries = sites.map((known) => ({ ...known, line: known.line + 1 }));
    expectHonest(compared(profile, temporaries, "allocated"), periodBytes);
    const left = bytesByLine(profile, "live");
    for (const known of temporaries) {
      // The last object of each line may still be live: one sample, which counts as one period.
      expect(left.get(placeOf(known))?.samples ?? 0).toBeLessThan(2);
    }
  });
});
