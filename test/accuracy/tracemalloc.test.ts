/** The same lines, counted one by one by the interpreter's own tracemalloc in the same run. */
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { environment } from "../environment.js";
import { programs, record, removeScratch } from "../run.js";
import { bytesByLine, type Estimate, truthIn } from "../truth.js";

afterAll(removeScratch);
const interpreters = environment.interpreters.filter(
  ({ chroot, freeThreaded }) => !chroot && !freeThreaded,
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
      )) {
        const line = place.slice(place.lastIndexOf(" ") + 1);
        const before = byLine.get(line) ?? { bytes: 0, standardError: 0, samples: 0 };
        byLine.set(line, {
          bytes: before.bytes + bytes,
          standardError: Math.hypot(before.standardError, standardError),
          samples: before.samples + samples,
        });
      }
      const large = truthIn(outcome.stdout).sites.filter(({ liveBytes }) => liveBytes > 2 ** 20);
      expect(large.length).toBeGreaterThan(6);
      for (const { file, line, liveBytes } of large) {
        const { bytes, standardError } = byLine.get(`${file}:${line}`) ?? {
          bytes: 0,
          standardError: 0,
        };
        const claim = `${file}:${line}: estimated ${bytes} ± ${standardError}, by tracemalloc ${liveBytes}`;
        expect(Math.abs(bytes - liveBytes), claim).toBeLessThanOrEqual(
          5 * standardError + 0.03 * liveBytes,
        );
        expect(standardError, claim).toBeLessThan(0.5 * liveBytes);
      }
    });
  },
);
