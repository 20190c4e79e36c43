/**
 * Are the errors that Tidemark states the errors that it makes? Hundreds of sites of known size:
 * the 95 % interval of each must hold the truth as often as it says, and the estimates must not lean
 * to one side. The bounds are those that a right implementation fails once in some ten thousand runs.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Profile } from "../../src/model/profile.js";
import { anyInterpreter, environment } from "../environment.js";
import { programs, record, removeScratch, scratch } from "../run.js";
import { bytesByLine, type Figure, type KnownSite, placeOf, truthIn } from "../truth.js";

const SITES = 300;
const BYTES_EACH = 800_000;
/** Fine enough that each site has some fifty samples, coarse enough to sample most of them. */
const PERIOD = "16K";
afterAll(removeScratch);

/** (estimate - truth) / standard error, of every site. */
function deviations(profile: Profile, sites: readonly KnownSite[], figure: Figure): number[] {
  const lines = bytesByLine(profile, figure);
  return sites.map((known) => {
    const estimate = lines.get(placeOf(known)) ?? { bytes: 0, standardError: 0 };
    const difference = estimate.bytes - known.liveBytes;
    // Objects far larger than the period are counted exactly: no error stated, none made.
    return Math.abs(difference) <= 1 ? 0 : difference / estimate.standardError;
  });
}

const oldest =
  environment.interpreters.find(({ chroot, freeThreaded }) => !chroot && !freeThreaded) ??
  anyInterpreter();
const tested = [
  ...new Map(
    [oldest, anyInterpreter()].map((interpreter) => [interpreter.path, interpreter]),
  ).values(),
];

describe.each(tested.map(({ version, path }) => [version, path]))(
  "Python %s",
  (_version, python) => {
    let sites: readonly KnownSite[];
    let profile: Profile;

    beforeAll(async () => {
      const module = join(scratch(), "sites.py");
      const command = [
        python,
        join(programs, "many_sites.py"),
        String(SITES),
        String(BYTES_EACH),
        module,
      ];
      const outcome = await record(command, { options: ["--period", PERIOD] });
      expect(outcome.status, outcome.stderr).toBe(0);
      sites = truthIn(outcome.stdout).sites;
      const recording = outcome.open();
      expect(recording.limits).toEqual([]);
      profile = recording.profileAt("end");
    });

    test("the 95 % interval holds the truth in about 95 % of the sites", () => {
      const found = deviations(profile, sites, "live");
      const held = found.filter((deviation) => Math.abs(deviation) <= 1.96).length;
      // Binomial(300, 0.945): below 0.895 once in ten thousand. (0.945, not 0.95: the error is itself
      // an estimate from some fifty samples.)
      expect(held / found.length).toBeGreaterThan(0.89);
    });

    test("and is no wider than it must be", () => {
      const found = deviations(profile, sites, "live").filter((deviation) => deviation !== 0);
      const meanSquare = found.reduce((sum, deviation) => sum + deviation ** 2, 0) / found.length;
      // One for a right error; its own standard error is sqrt(2 / 300), and heavier tails.
      expect(meanSquare).toBeGreaterThan(0.65);
      expect(meanSquare).toBeLessThan(1.6);
    });

    test("the estimates lean to no side", () => {
      const found = deviations(profile, sites, "live");
      const mean = found.reduce((sum, deviation) => sum + deviation, 0) / found.length;
      expect(Math.abs(mean)).toBeLessThan(4.5 / Math.sqrt(found.length));
      const lines = bytesByLine(profile, "live");
      const exact = sites.reduce((sum, { liveBytes }) => sum + liveBytes, 0);
      const estimated = sites.reduce(
        (sum, known) => sum + (lines.get(placeOf(known))?.bytes ?? 0),
        0,
      );
      expect(Math.abs(estimated / exact - 1)).toBeLessThan(0.05);
    });

    test("the allocated bytes as well, of what lives and of what came and went", () => {
      const found = deviations(profile, sites, "allocated");
      expect(
        found.filter((deviation) => Math.abs(deviation) <= 1.96).length / found.length,
      ).toBeGreaterThan(0.89);
      const lines = bytesByLine(profile, "allocated");
      const temporaries = sites.map((known) => ({ ...known, line: known.line + 1 }));
      const exact = temporaries.reduce((sum, { liveBytes }) => sum + liveBytes, 0);
      const estimated = temporaries.reduce(
        (sum, known) => sum + (lines.get(placeOf(known))?.bytes ?? 0),
        0,
      );
      expect(Math.abs(estimated / exact - 1)).toBeLessThan(0.05);
      const left = bytesByLine(profile, "live");
      for (const known of temporaries)
        expect(left.get(placeOf(known))?.bytes ?? 0).toBeLessThan(100_000);
    });
  },
);
