/** The figures and words of a verdict agree with what was measured: figures of real programs. */
import { describe, expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import type { Evidence } from "../evidence/evidence.js";
import { diagnose } from "./verdict.js";

const MIB = 2 ** 20;
const CALM = ["steady", "warm-up", "cache-plateau"];
const detailOf = (evidence: Evidence, rule: string) =>
  diagnose(evidence).evidence.find((one) => one.rule === rule)?.detail;

/** The evidence with other readings of RSS; `at`: MiB after a number of seconds. */
function withRss(text: string, at: (second: number) => number): Evidence {
  const evidence = evidenceOf(text);
  const [process] = evidence.processes;
  for (const metric of ["rssBytes", "anonRssBytes"] as const) {
    const values = process?.series.values.get(metric);
    process?.series.timesMs.forEach((time, i) => {
      if (values) {
        values[i] = at((time - evidence.window.startMs) / 1000) * MIB;
      }
    });
  }
  return evidence;
}

/** 13.6 MiB an hour: a page at a time. */
const slowly = (from: number) => (second: number) =>
  Math.floor((from + (13.6 * second) / 3600) * 256) / 256;

describe("a slow but certain rise", () => {
  test("is never calm: its rate, a day's growth, and the time that would settle it", () => {
    for (const minutes of [2.5, 5, 10]) {
      const { verdict, advice } = diagnose(
        withRss(`minute ${minutes}\nsite parse churns 1`, slowly(12.2)),
      );
      expect(verdict.kind).toBe("insufficient-evidence");
      expect(verdict.summary).toMatch(
        /RSS grows by 1[34] MiB\/h(?: \(1[34] MiB\/h to 1[34] MiB\/h\))?, .* 3[12]\d MiB a day .*a window of \d+ (?:min|h) would settle it/,
      );
      expect(advice.map(({ id }) => id)).toContain("TM-A090");
    }
  });

  test("is undecided, not steady, in half a minute", () => {
    const half = (at: (second: number) => number) =>
      diagnose(withRss("minute 0.5\nsite parse churns 1", at)).verdict;
    const noise = (second: number) => (second > 20 ? Math.sin(second * 7.3) * 0.4 : 0);
    for (const shown of [half((s) => 35 + 0.07 * s), half((s) => 35 + 0.09 * s + noise(s))]) {
      expect(shown.kind).toBe("insufficient-evidence");
      expect(shown.summary).toMatch(
        /RSS rose by .* A slow leak looks the same; a window of 1 min would settle it\.$/,
      );
    }
    expect(half((s) => 35 + 0.02 * s).kind).toBe("steady");
  });

  test("is undecided in a minute if it is even, also beside peaks that are freed", () => {
    const even = (s: number) => 25 + (80 * s) / 3600;
    const peaks = (s: number) => even(s) + (s % 10 < 0.3 ? 300 : 0);
    for (const at of [even, peaks]) {
      const { verdict } = diagnose(withRss("minute 1\nsite parse churns 1", at));
      expect(verdict.kind).toBe("insufficient-evidence");
      expect(verdict.summary).toMatch(/80 MiB\/h.* a window of 5 min would settle it/);
    }
    const swings = (s: number) => 25 + (s % 10 < 0.3 ? 300 : 0);
    expect(CALM).toContain(diagnose(withRss("minute 1\nsite parse churns 1", swings)).verdict.kind);
  });

  test("is undecided if the lowest levels between swings rise too", () => {
    // A text of 4 MiB and more, of which each addition makes a copy.
    const phase = (s: number) => Math.abs((Math.sin(s * 127.1) * 43758.5) % 1);
    const copied = (s: number) => 10 + (2.5 + s / 24) * (1 + phase(s));
    const minute = "minute 1\nsite parse churns 1";
    const { verdict, growth } = diagnose(withRss(minute, copied));
    expect(growth.low).toBeGreaterThan(0);
    expect(verdict.kind).toBe("insufficient-evidence");
    expect(verdict.summary).toMatch(
      /RSS swings between .* lowest levels rise too.* would settle it/,
    );
    const level = (s: number) => 10 + 4 * (1 + phase(s));
    expect(CALM).toContain(diagnose(withRss(minute, level)).verdict.kind);
  });

  test("the verdict adds what censuses counted", () => {
    const text = "minute 5\nsite parse churns 1\ncensus dict 1 + 0.003/s\ncensuses 30s 280s";
    expect(diagnose(withRss(text, slowly(12.2))).verdict.summary).toMatch(
      /So far: .*786 more dict/,
    );
  });

  test("noise, a rise that ends, and a rise of a few pages in a minute stay calm", () => {
    const calm = (minutes: number, at: (second: number) => number) =>
      diagnose(withRss(`minute ${minutes}\nsite parse churns 1`, at)).verdict.kind;
    expect(CALM).toContain(calm(5, (s) => 60 + Math.sin(s * 7.3) * 0.3));
    expect(CALM).toContain(calm(5, (s) => 60 + 1.5 * (1 - Math.exp(-s / 60))));
    expect(CALM).toContain(calm(5, (s) => 60 + Math.min(s, 200) / 200));
    expect(CALM).toContain(calm(1, slowly(60)));
    expect(CALM).toContain(calm(10, (s) => 2048 + (3 * s) / 3600)); // 72 MiB a day, of 2 GiB
  });

  test("a rise whose interval excludes zero is never called insignificant", () => {
    const detail = detailOf(withRss("site parse churns 1", slowly(60)), "trend");
    expect(detail).toMatch(/rose by 15\d KiB in the last 39 s .*less than 1\.9 MiB, which/);
    const filled = withRss("site parse churns 1", (s) => 13 + 21.8 * Math.min(1, s / 42));
    expect(detailOf(filled, "trend") ?? "").not.toMatch(/not significant|too little/);
  });
});

describe("memory that rose and fell", () => {
  const burst = (s: number) =>
    s < 35 ? 14.5 + (31.9 * s) / 35 : Math.max(15.1, 46.4 - 1.5 * (s - 35));

  test("is described as that, at its last level, and its queue is no cache", () => {
    const evidence = withRss("site produce fills 31 by 35s", burst);
    for (const site of evidence.sites?.sites ?? []) {
      site.liveBytes.fill(0, -4); // drained
    }
    const { verdict } = diagnose(evidence);
    expect(verdict.kind).toBe("steady");
    expect(verdict.summary).toBe(
      "Memory rose to 46 MiB and fell back to 15 MiB: 15 MiB resident after 60 s.",
    );
  });

  const filled = () => withRss("site page fills 27 by 20s", (s) => 14 + 27 * Math.min(1, s / 20));

  test("a cache that evicts is one, with its line", () => {
    const evidence = filled();
    const { sites: [site] = [], snapshotTimes = [] } = evidence.sites ?? {};
    snapshotTimes.forEach((timeMs, snapshot) => {
      site?.allocatedBytes.fill((timeMs - evidence.window.startMs) * 1400, snapshot);
    });
    expect(diagnose(evidence).verdict).toMatchObject({
      kind: "cache-plateau",
      summary: "A cache filled up: page (app.py:7) keeps 27 MiB; 41 MiB resident after 60 s.",
    });
  });

  test("what fills and then allocates nothing may be data that was loaded once", () => {
    const evidence = filled();
    for (const site of evidence.sites?.sites ?? []) {
      site.allocatedBytes.set(site.liveBytes);
    }
    expect(diagnose(evidence).verdict).toMatchObject({
      kind: "cache-plateau",
      summary:
        "page (app.py:7) built up 27 MiB and then stopped: data that was loaded once, or a full cache; 41 MiB resident after 60 s.",
    });
  });
});

describe("a bounded cache that fills", () => {
  const text = `anonRssBytes 17 + 1.2/s
    site page keeps 1.2/s
    holder page held=40 retained=54 entries=3818 bound=200000 at=36s path=Catalog`;
  const named = (): Evidence => {
    const evidence = evidenceOf(text);
    const holders = evidence.holders?.map((one) => ({
      ...one,
      holder: one.holder && {
        ...one.holder,
        path: ["module __main__", "Catalog", ".page", "field of functools._lru_cache_wrapper"],
      },
    }));
    return { ...evidence, ...(holders ? { holders } : {}) };
  };

  test("its name, line, rate, size when full and time until then", () => {
    const { verdict, suspects, filling } = diagnose(named());
    expect(verdict.kind).toBe("cache-plateau");
    expect(suspects).toEqual([]);
    expect(filling).toMatchObject([
      { stack: [{ function: "page" }], holder: { entries: 3818 }, bound: 200_000 },
    ]);
    expect(verdict.summary).toMatch(
      /^A cache is filling up to its bound: lru_cache of Catalog\.page was 2 % full \(3,818 of 200,000 entries\) 36 s after the start; allocated by page \(app\.py:7\); 4\.2 GiB\/h; at this rate it is full in 38 min and then holds about 2\.8 GiB\.$/,
    );
  });

  test("a limit that is reached before", () => {
    const evidence = named();
    const [process] = evidence.processes;
    const times = process?.series.timesMs ?? new Float64Array();
    const values = process?.series.values as Map<string, Float64Array>;
    values.set(
      "cgroupLimitBytes",
      times.map(() => 1024 * MIB),
    );
    values.set(
      "cgroupUsageBytes",
      times.map(() => 100 * MIB),
    );
    expect(diagnose(evidence).verdict.summary).toContain(
      "; before that, the limit of 1.0 GiB is reached in 13 min.",
    );
  });

  test("the evidence on ages is a whole sentence that does not contradict it", () => {
    expect(detailOf(named(), "age-cohorts")).toBe(
      "Only containers with a bound keep what is allocated: page (app.py:7) has 48 MiB allocated in the last 40 s live.",
    );
  });
});

describe("sites compared with the whole program", () => {
  test("sites that keep more than the program grows are explained", () => {
    const text = "anonRssBytes 12 + 0.13/s\nsite produce keeps 0.17/s";
    const attached = evidenceOf(text);
    const target = { ...attached.target, startedMs: attached.window.startMs - 60_000 };
    expect(detailOf({ ...attached, target }, "age-cohorts")).toMatch(
      /6\.4 MiB allocated in the last 40 s are live, 612 MiB\/h, 100 % of what all sites keep\. RSS grows by only 468 MiB\/h: memory allocated before the recording is freed/,
    );
    expect(
      detailOf(evidenceOf("anonRssBytes 12 + 0.2/s\nsite produce keeps 0.17/s"), "age-cohorts"),
    ).toMatch(/of the growth\.$/);
  });

  test("the rise of a leak that begins late is what was measured", () => {
    const text = "minute 1.25\nanonRssBytes 11 begins 0.76 at 35s\nsite serve begins 0.76 at 35s";
    const [, mib] = /(\d+) MiB/.exec(detailOf(evidenceOf(text), "age-cohorts") ?? "") ?? [];
    expect(Number(mib)).toBeGreaterThan(0);
    expect(Number(mib)).toBeLessThanOrEqual(31);
  });
});

test("memory that is mostly free inside Python's allocator is named", () => {
  const text =
    "site load churns 1\nledger.python.used 2\nledger.python.free 108\nledger.malloc.free 1";
  const { verdict } = diagnose(withRss(text, (s) => (s < 8 ? 11 : 120)));
  expect(verdict.summary).toContain(
    "120 MiB resident after 60 s, 108 MiB of it free inside Python's allocator, which keeps it.",
  );
});
