/**
 * Are the errors that Tidemark states the errors that it makes? Hundreds of lines of known size: the
 * estimates must not lean to one side, their scatter must be the stated one, and 95 % intervals must
 * hold the truth as often as they say. Each bound is one that a right implementation misses about once
 * in ten thousand runs.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Profile } from "../../src/model/profile.js";
import { anyInterpreter, environment } from "../environment.js";
import { programs, record, removeScratch, scratch } from "../run.js";
import { bytesByLine, type Figure, type KnownSite, placeOf, truthIn } from "../truth.js";

const SITES = 240;
const BYTES_EACH = 400_000;
/** Under some forty samples no normal interval means much: so many sites go together. */
const SAMPLES_A_GROUP = 40;
afterAll(removeScratch);

interface Compared {
  readonly difference: number;
  readonly variance: number;
  readonly exact: number;
}

function compared(profile: Profile, sites: readonly KnownSite[], figure: Figure): Compared[] {
  const lines = bytesByLine(profile, figure);
  return sites.map((known) => {
    const { bytes, standardError } = lines.get(placeOf(known)) ?? { bytes: 0, standardError: 0 };
    return {
      difference: bytes - known.liveBytes,
      variance: standardError ** 2,
      exact: known.liveBytes,
    };
  });
}

function sum(parts: readonly Compared[]): Compared {
  return parts.reduce((total, part) => ({
    difference: total.difference + part.difference,
    variance: total.variance + part.variance,
    exact: total.exact + part.exact,
  }));
}

/** Samples that would state such an error. */
function samplesBehind({ exact, variance }: Compared): number {
  return exact ** 2 / variance;
}

/** Each of sites far apart in the program and of several sizes. */
function groupsOf(parts: readonly Compared[], count: number): Compared[] {
  return Array.from({ length: count }, (_, group) =>
    sum(parts.filter((_part, index) => ((index * 17) % parts.length) % count === group)),
  );
}

/** The most successes of `tries` that come short of once in ten thousand times. */
function unlikelyFew(tries: number, probability: number): number {
  let chance = (1 - probability) ** tries;
  let total = chance;
  let successes = 0;
  while (total < 1e-4) {
    chance *= ((tries - successes) / (successes + 1)) * (probability / (1 - probability));
    successes++;
    total += chance;
  }
  return successes - 1;
}

function expectHonest(parts: readonly Compared[]): void {
  const total = sum(parts);
  const samples = samplesBehind(total);
  // So that nothing below is passed by errors as large as the figures.
  expect(samples, "samples").toBeGreaterThan(5 * SAMPLES_A_GROUP);

  const lean = total.difference / Math.sqrt(total.variance);
  expect(Math.abs(lean), `leans by ${lean} standard errors`).toBeLessThan(4);

  // Both are unbiased estimates of the same scatter, however few samples a site has; their own
  // scatter is that of squares of counts.
  const scatter = parts.reduce((all, { difference }) => all + difference ** 2, 0) / total.variance;
  const tolerance = 5 * Math.sqrt(2 / parts.length + 2 / samples);
  expect(Math.abs(scatter - 1), `scatter ${scatter} of the stated`).toBeLessThan(tolerance);

  const groups = groupsOf(parts, Math.min(40, Math.floor(samples / SAMPLES_A_GROUP)));
  const held = groups.filter(
    ({ difference, variance }) => Math.abs(difference) <= 1.96 * Math.sqrt(variance),
  );
  // 0.935: what a 95 % interval holds when its width comes from forty samples itself.
  const share = `${held.length} of ${groups.length} intervals hold`;
  expect(held.length, share).toBeGreaterThan(unlikelyFew(groups.length, 0.935));
}

const oldest =
  environment.interpreters.find(({ chroot, freeThreaded }) => !chroot && !freeThreaded) ??
  anyInterpreter();
const tested = new Map([oldest, anyInterpreter()].map(({ version, path }) => [version, path]));

describe.each([...tested])("Python %s", (_version, python) => {
  let sites: readonly KnownSite[];
  let profile: Profile;

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
  });

  test("live bytes", () => expectHonest(compared(profile, sites, "live")));

  test("allocated bytes, of what stays and of what comes and goes", () => {
    expectHonest(compared(profile, sites, "allocated"));
    const temporaries = sites.map((known) => ({ ...known, line: known.line + 1 }));
    expectHonest(compared(profile, temporaries, "allocated"));
    const left = bytesByLine(profile, "live");
    for (const known of temporaries) {
      // The last one of each may still be there.
      expect(left.get(placeOf(known))?.bytes ?? 0).toBeLessThan(100_000);
    }
  });
});
