import { expect, test } from "vitest";
import { rateIn } from "../../model/settings/rate.js";
import { type Condition, conditionOf, levelIn, ProgramReadings } from "./conditions.js";

const MIB = 2 ** 20;
const GROWTH: Condition = { kind: "growth", rate: { share: 0.2 }, windowMs: 900_000 };

/** A reading every 10 s. `rss`: by number of the reading. */
function readings(
  count: number,
  rss: (n: number) => number,
  conditions: readonly Condition[] = [GROWTH],
): ProgramReadings {
  const all = new ProgramReadings().for(conditions);
  for (let n = 0; n < count; n++) {
    all.add({
      timeMs: n * 10_000,
      rssBytes: rss(n),
      limit: null,
      pressure: null,
      oomKills: null,
      hasLost: false,
    });
  }
  return all;
}

test.each([
  ["20%/h", { share: 0.2 }],
  ["100MiB/h", { bytes: 100 * MIB }],
  ["24 MiB / d", { bytes: MIB }],
  ["1MiB/min", { bytes: 60 * MIB }],
  ["20%", null],
  ["100MiB", null],
  ["fast/h", null],
  ["-5%/h", null],
])("a rate: %s", (text, expected) => {
  expect(rateIn(text)).toEqual(expected);
});

test("a level is a size, or a size above the baseline", () => {
  expect(levelIn("2GiB")).toEqual({ bytes: 2048 * MIB, aboveBaseline: false });
  expect(levelIn("500MiB above baseline")).toEqual({ bytes: 500 * MIB, aboveBaseline: true });
  expect(levelIn("500MiB above")).toBeNull();
});

test("one condition at a time", () => {
  expect(conditionOf({})).toMatch(/^expected one condition/);
  expect(conditionOf({ limit: 0.9, pressure: 0.1 })).toMatch(/^expected one condition/);
  expect(conditionOf({ limit: 0.9, for: 60_000 })).toBe("for belongs to growth");
  expect(conditionOf({ growth: { share: 1 }, for: 5_000 })).toMatch(/at least 1min/);
});

test("growth holds only if it is certain, fast enough, and seen for the whole window", () => {
  const noise = (n: number) => ((n * 7919) % 13) * 100_000;
  const growing = (n: number) => 200 * MIB + n * 300_000 + noise(n);
  expect(readings(100, growing).holds(GROWTH)).toMatch(
    /^its RSS grew by \d+ MiB\/h \(\d+ % an hour\)/,
  );
  expect(readings(50, growing).holds(GROWTH)).toBeNull();
  expect(readings(100, (n) => 200 * MIB + n * 50_000 + noise(n)).holds(GROWTH)).toBeNull();
  expect(readings(100, (n) => 200 * MIB + noise(n)).holds(GROWTH)).toBeNull();
  expect(readings(100, (n) => (n < 50 ? 200 : 300) * MIB + noise(n)).holds(GROWTH)).toBeNull();
});

test("readings of a day are thinned out, and growth is still seen", () => {
  const day: Condition = { kind: "growth", rate: { bytes: MIB }, windowMs: 86_400_000 };
  expect(readings(9000, (n) => 200 * MIB + n * 10_000).holds(day)).toMatch(
    /3\.\d MiB\/h|3\.\d+ MiB/,
  );
});

test("a program without a condition about RSS needs it only for the baseline, and keeps one reading", () => {
  const rest = { limit: null, pressure: null, oomKills: null, hasLost: false };
  const all = new ProgramReadings().for([{ kind: "oom-kill" }]);
  const wanted: boolean[] = [];
  for (let timeMs = 0; timeMs <= 120_000; timeMs += 20_000) {
    wanted.push(all.wantsRss(timeMs));
    all.add({ timeMs, rssBytes: all.wantsRss(timeMs) ? 100 * MIB : null, ...rest });
  }
  expect(wanted).toEqual([true, true, true, true, false, false, false]);
  const above: Condition = { kind: "rss", bytes: 50 * MIB, aboveBaseline: true };
  all.for([above, GROWTH]);
  expect(all.wantsRss(140_000)).toBe(true);
  expect(all.holds(above)).toBeNull();
  all.add({ timeMs: 140_000, rssBytes: 150 * MIB, ...rest });
  expect(all.holds(above)).toContain("50.0 MiB above its baseline of 100 MiB");
  expect(all.holds(GROWTH)).toBeNull();
});

test("the baseline is the level of the first minute", () => {
  const above: Condition = { kind: "rss", bytes: 50 * MIB, aboveBaseline: true };
  const all = readings(20, (n) => (n < 4 ? 50 + n * 20 : 150) * MIB);
  expect(all.holds(above)).toBeNull();
  expect(readings(20, (n) => (n < 10 ? 100 : 160) * MIB).holds(above)).toBe(
    "its RSS is 160 MiB, 60.0 MiB above its baseline of 100 MiB",
  );
});

test("a kill in the control group counts only for the program that lost a process", () => {
  const kill = (hasLost: boolean) => {
    const all = readings(2, () => MIB);
    for (const oomKills of [3, 4]) {
      const rest = { rssBytes: MIB, limit: null, pressure: null };
      all.add({ timeMs: 30_000 + oomKills, oomKills, hasLost: hasLost && oomKills === 4, ...rest });
    }
    return all.holds({ kind: "oom-kill" });
  };
  expect(kill(false)).toBeNull();
  expect(kill(true)).toContain("the OOM killer ran");
});

test("the share of the limit and pressure hold from their level on", () => {
  const at = (usedBytes: number, pressure: number | null) => {
    const all = new ProgramReadings();
    const limit = { bytes: 400 * MIB, usedBytes };
    all.add({ timeMs: 0, rssBytes: MIB, limit, pressure, oomKills: null, hasLost: false });
    return all;
  };
  const limit: Condition = { kind: "limit", share: 0.9 };
  const pressure: Condition = { kind: "pressure", share: 0.1 };
  expect(at(360 * MIB, null).holds(limit)).toBe("90 % of its memory limit of 400 MiB is in use");
  expect(at(359 * MIB, null).holds(limit)).toBeNull();
  expect(at(0, 0.12).holds(pressure)).toContain("during 12 % of the last 10 s");
  expect(at(0, 0.09).holds(pressure)).toBeNull();
  expect(at(0, null).holds(pressure)).toBeNull();
});
