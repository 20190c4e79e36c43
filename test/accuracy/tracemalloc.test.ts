/** Compares lines with the exact counts of the interpreter's own tracemalloc in the same run. */
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { coarsestPeriod } from "../../src/inspect/recorded/summary.js";
import { Domain } from "../../src/model/profile/profile.js";
import { environment } from "../environment.js";
import { programs, record, removeScratch } from "../run.js";
import { bytesByLine, type Estimate, largestError, truthIn } from "../truth.js";

afterAll(removeScratch);
const nothing: Estimate = { bytes: 0, standardError: 0, samples: 0 };
const all = environment.interpreters.filter(({ chroot, freeThreaded }) => !chroot && !freeThreaded);
/** The oldest, one in between, and the newest: tracemalloc takes seconds on each. */
const interpreters = [...new Set([all[0], all[Math.floor(all.length / 2)], all.at(-1)])].filter(
  (interpreter) => interpreter !== undefined,
);

describe.each(interpreters.map(({ version, path }) => [version, path]))(
  "Python %s",
  (_version, python) => {
    test("the largest lines have the sizes that tracemalloc gives them", async () => {
      const outcome = await record([python, join(programs, "everyday.py")], {
        options: ["--period", "16K"],
      });
      expect(outcome.status, outcome.stderr).toBe(0);
      const byLine = new Map<string, Estimate>();
      for (const [place, { bytes, standardError, samples }] of bytesByLine(
        outcome.open().profileAt("end"),
        "live",
        // tracemalloc does not count the memory that it allocates itself for each block, by malloc.
        { domain: Domain.python },
      )) {
        const line = place.slice(place.lastIndexOf(" ") + 1);
        const before = byLine.get(line) ?? nothing;
        byLine.set(line, {
          bytes: before.bytes + bytes,
          standardError: Math.hypot(before.standardError, standardError),
          samples: before.samples + samples,
        });
      }
      const large = truthIn(outcome.stdout).sites.filter(({ liveBytes }) => liveBytes > 2 ** 20);
      expect(large.length).toBeGreaterThan(6);
      const coarsest = coarsestPeriod(outcome.open());
      let estimated = 0;
      let variance = 0;
      for (const { file, line, liveBytes } of large) {
        const { bytes, standardError } = byLine.get(`${file}:${line}`) ?? nothing;
        const claim = `${file}:${line}: estimated ${bytes} ± ${standardError}, exactly ${liveBytes}`;
        // A line that by chance was sampled too rarely states too small an error, or none: then use the error
        // that its true size would have had at the coarsest period.
        const fairError = Math.max(standardError, Math.sqrt(liveBytes * coarsest));
        const slack = 0.03 * liveBytes;
        expect(Math.abs(bytes - liveBytes), claim).toBeLessThanOrEqual(5 * fairError + slack);
        estimated += bytes;
        variance += standardError ** 2;
      }
      const exact = large.reduce((sum, { liveBytes }) => sum + liveBytes, 0);
      const error = Math.sqrt(variance);
      const claim = `in all: estimated ${estimated} ± ${error}, exactly ${exact}`;
      expect(Math.abs(estimated - exact), claim).toBeLessThan(5 * error + 0.02 * exact);
      expect(error, claim).toBeLessThan(Math.max(0.3 * exact, largestError(estimated, coarsest)));
    });
  },
);
