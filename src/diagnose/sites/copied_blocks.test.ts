import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { observe } from "../evidence/observations.js";
import { diagnose } from "../verdict/verdict.js";

const MIB = 2 ** 20;

/** A table that is extended by concat: for two moments the old and the new one are resident. */
function withCopies(text: string, atMs: readonly number[], mib: number) {
  const evidence = evidenceOf(text);
  const series = evidence.processes[0]?.series;
  for (const metric of ["rssBytes", "anonRssBytes"] as const) {
    const values = series?.values.get(metric);
    series?.timesMs.forEach((time, i) => {
      const ms = time - evidence.window.startMs;
      if (values && atMs.some((at) => ms >= at && ms < at + 1_700)) {
        values[i] = (values[i] ?? 0) + mib * MIB;
      }
    });
  }
  return evidence;
}

test("a block that is copied to grow is accused although the copies look like steps of RSS", () => {
  const evidence = withCopies(
    "rssBytes 60 + 0.5/s\nanonRssBytes 40 + 0.5/s\nsite append swells 0.5/s domain=native",
    [44_000, 57_000],
    30,
  );
  const { target, suspects } = observe(evidence);
  expect(target.growth("anonRssBytes").shape).toBe("stepped");
  expect(suspects.map(({ course }) => course)).toEqual(["swells"]);
  expect(diagnose(evidence).verdict.kind).not.toBe("insufficient-evidence");
});
