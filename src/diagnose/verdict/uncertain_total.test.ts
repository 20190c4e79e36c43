import { describe, expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { observe } from "../evidence/observations.js";
import { doubtAbout } from "../series/growth.js";
import { diagnose } from "./verdict.js";

describe("a leak that the readings of the whole program do not show with certainty", () => {
  const text = (rss: string) =>
    `rssBytes 700${rss}\nanonRssBytes 100\nsite record keeps 0.3/s\nholder record held=40 path=app>log`;
  const ages = (written: string) =>
    diagnose(evidenceOf(written)).evidence.find(({ rule }) => rule === "age-cohorts")?.detail;

  test.each(["", " + 0.02/s"])(
    "is stated in live bytes, which the header does not show: %s",
    (rss) => {
      const { verdict, growth } = diagnose(evidenceOf(text(rss)));
      expect(verdict.summary).toMatch(/; live bytes grow by 1\.1 GiB\/h\.$/);
      expect(growth.ofLiveBytes).toBe(true);
      expect(ages(text(rss))).toMatch(/100 % of what all sites keep\.$/);
    },
  );

  test("is stated as the growth of the program if that is certain", () => {
    const certain = "anonRssBytes 40 + 0.3/s\nsite record keeps 0.3/s";
    const { verdict, growth } = diagnose(evidenceOf(certain));
    expect(verdict.summary).toMatch(/\(app\.py:7\); 1\.1 GiB\/h\.$/);
    expect(growth.ofLiveBytes).toBeUndefined();
    expect(ages(certain)).toMatch(/100 % of the growth\.$/);
  });
});

test("the header states why growth above zero is not certain", () => {
  const doubt = (text: string) => doubtAbout(observe(evidenceOf(text)).total);
  expect(doubt("rssBytes 700 + 0.02/s\nanonRssBytes 100")).toBe("small");
  expect(doubt("anonRssBytes 40 + 1/s")).toBeNull();
  expect(doubt("anonRssBytes 40")).toBeNull();
  expect(doubt("minute 0.02\nanonRssBytes 40 + 1/s")).toBeNull();
});

describe("a profile without readings of memory, as an imported pool", () => {
  const verdictOf = (text: string) => {
    const evidence = evidenceOf(text);
    const series = { pid: 42, timesMs: new Float64Array(), values: new Map() };
    const processes = evidence.processes.map((process) => ({ ...process, series }));
    return diagnose({ ...evidence, processes }).verdict;
  };

  test("states that live allocations do not grow, and that other memory may", () => {
    const shown = verdictOf("site tables fills 20 by 15s\nsite parse churns 0.3");
    expect(shown.kind).toBe("insufficient-evidence");
    expect(shown.summary).toMatch(
      /2\d MiB were live after 60 s, and only \d+ KiB of it were allocated in the last 40 s, so live allocations do not grow\. Only a recorder shows .*, and a window of 1 min would settle it\.$/,
    );
    expect(verdictOf("site tables fills 20 by 15s").summary).toMatch(/, and none of it was /);
  });

  test("does not state it if more may have been kept, and is a leak if it was", () => {
    expect(verdictOf("site parse churns 30").summary).not.toMatch(/do not grow/);
    expect(verdictOf("site record keeps 1/s").kind).toBe("python-leak");
  });
});
