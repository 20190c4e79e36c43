/** fleetbench: what each further shape of a service does, and that those which do not leak are not accused at any age. */
import { expect, inject, test } from "vitest";
import { RULES } from "../fleetbench/answers.mjs";
import type { Process } from "../fleetbench/folder.mjs";
import { type Cause, generateFleet, SHAPE_CAUSES } from "../fleetbench/generate.mjs";
import { DEPLOY_AGES_MS } from "../fleetbench/moments.mjs";
import { Random } from "../fleetbench/random.mjs";
import { scoreFleet } from "../fleetbench/score.mjs";
import { SHAPES } from "../fleetbench/shapes.mjs";

const FIRST_SEED = 15_002;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LIMIT = 1000;

test("services of further shapes are not accused unless they leak, and then they are", () => {
  const own = RULES.get("tidemark") as NonNullable<ReturnType<typeof RULES.get>>;
  const rows = Array.from({ length: inject("counts").shapeFleets }, (_, at) =>
    scoreFleet(generateFleet(FIRST_SEED + at, { causes: [...SHAPE_CAUSES] }), own, DEPLOY_AGES_MS),
  ).flat();
  const wrong = rows.filter(({ isLeak, reported, everFalse }) => everFalse || reported !== isLeak);
  expect(wrong.map(({ fleet, service, answer }) => [fleet, service, answer])).toEqual([]);
});

/** Of one service, and the end of its fleet. */
function fleetOf(cause: Cause, seed = FIRST_SEED) {
  const { endMs, processes } = generateFleet(seed, { causes: [cause] });
  const versions = [...new Set(processes.map(({ version }) => version))];
  const starts = new Map(
    versions.map((version) => [version, Math.min(...of(processes, version).map(startOf))]),
  );
  const last = versions.reduce((a, b) => ((starts.get(b) ?? 0) > (starts.get(a) ?? 0) ? b : a));
  const running = processes.filter(({ endedMs }) => endedMs === null);
  return { endMs, processes, running, last, starts };
}

const of = (processes: readonly Process[], version: string) =>
  processes.filter((each) => each.version === version);
const startOf = ({ startedMs }: Process) => startedMs;
const lifeOf = ({ startedMs, endedMs }: Process, endMs: number) => (endedMs ?? endMs) - startedMs;

test.each(["without-limit", "leak-without-limit"] as const)("%s: no process has one", (cause) => {
  const { processes } = fleetOf(cause);
  expect(new Set(processes.map(({ limitBytes }) => limitBytes))).toEqual(new Set([0]));
});

test.each(["canary", "leak-on-a-canary"] as const)(
  "%s: one or two instances run the last version beside the one before",
  (cause) => {
    const { running, last } = fleetOf(cause);
    const canaries = of(running, last);
    expect([1, 2]).toContain(canaries.length);
    expect(running.length).toBeGreaterThan(canaries.length);
  },
);

test("traffic-shift: each half of the instances runs one version, and requests move to the last", () => {
  const { running, last, endMs } = fleetOf("traffic-shift");
  const news = of(running, last);
  expect(new Set(news.map(({ instance }) => instance)).size).toBeGreaterThan(0);
  expect(new Set(running.map(({ version }) => version)).size).toBe(2);
  const figures = { versions: [{ timeMs: endMs - 3 * DAY }] };
  const { shareAt } = SHAPES["traffic-shift"].of(new Random(1), figures) as {
    shareAt: (time: number, isLast: boolean) => number;
  };
  expect([shareAt(endMs - 3 * DAY, true), shareAt(endMs - 3 * DAY, false)]).toEqual([0.02, 0.98]);
  expect([shareAt(endMs, true), shareAt(endMs, false)]).toEqual([1, 0.02]);
});

test("deploys-in-a-row: at least two versions were deployed within a day before the last", () => {
  const { starts, last } = fleetOf("deploys-in-a-row");
  const lastMs = starts.get(last) ?? 0;
  const near = [...starts.values()].filter((ms) => ms < lastMs && ms > lastMs - 26 * HOUR);
  expect(near.length).toBeGreaterThanOrEqual(2);
});

test("rolling-restarts: instances end at different times, and no life is longer than three days", () => {
  const { processes, endMs } = fleetOf("rolling-restarts");
  expect(Math.max(...processes.map((each) => lifeOf(each, endMs)))).toBeLessThanOrEqual(3 * DAY);
  const hours = processes.flatMap(({ endedMs }) =>
    endedMs === null ? [] : [Math.floor((endedMs % DAY) / HOUR)],
  );
  expect(new Set(hours).size).toBeGreaterThan(3);
});

test("killed-by-peaks: instances end although their last reading is far below the limit", () => {
  const { processes } = fleetOf("killed-by-peaks");
  const killed = processes.filter(
    ({ endedMs, rss, limitBytes }) =>
      endedMs !== null && (rss.values.at(-1) ?? 0) < 0.8 * limitBytes,
  );
  expect(killed.length).toBeGreaterThan(3);
});

test("clock-jumps: times ascend, and no reading comes after the end", () => {
  const { processes, endMs } = fleetOf("clock-jumps");
  for (const { rss } of processes) {
    expect(rss.times.every((time, at) => at === 0 || time > (rss.times[at - 1] ?? 0))).toBe(true);
    expect(rss.times.at(-1) ?? 0).toBeLessThanOrEqual(endMs);
  }
});

/** At an age, of a process that started at midnight. */
const addedBy = (cause: "arena-growth" | "night-job" | "log-buffer") => {
  const { addedAt } = SHAPES[cause].of(new Random(1), { limit: LIMIT });
  return (age: number) => addedAt({ age, time: 100 * DAY + age });
};

test("arena-growth: rises for days, by less and less", () => {
  const at = addedBy("arena-growth");
  const rises = [0, 1, 2, 3].map((day) => at((day + 1) * DAY) - at(day * DAY));
  expect(rises).toEqual([...rises].sort((a, b) => b - a));
  expect(at(9 * DAY)).toBeLessThanOrEqual(0.1 * LIMIT);
});

test("night-job: needs most at the same hours of each day, and keeps a part of it", () => {
  const at = addedBy("night-job");
  const day = (from: number) =>
    Array.from({ length: 48 }, (_, half) => at(from + (half * HOUR) / 2));
  expect(day(2 * DAY)).toEqual(day(5 * DAY));
  const levels = new Set(day(2 * DAY));
  expect(levels.size).toBe(2);
  expect(Math.min(...levels)).toBeLessThanOrEqual(0.5 * Math.max(...levels));
});

test("log-buffer: repeatedly rises in a straight line and falls to nothing", () => {
  const at = addedBy("log-buffer");
  const values = Array.from({ length: 10 * 24 * 60 }, (_, minute) => at(minute * 60_000));
  const flushes = values.filter((value, minute) => minute > 0 && value < (values[minute - 1] ?? 0));
  expect(flushes.length).toBeGreaterThan(3);
  expect(Math.max(...flushes)).toBeLessThan(0.01 * LIMIT);
});
