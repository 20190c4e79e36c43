import { expect, test } from "vitest";
import { diagnoseService } from "../diagnose_fleet.js";
import {
  DAY,
  diagnosisOf,
  END,
  HOUR,
  type Life,
  MIB,
  processOf,
  three,
} from "../fleet_evidence.fixture.js";
import { oddInstances } from "../instances/odd_instances.js";
import { type GroupGrowth, groupGrowth } from "./group_growth.js";
import { clearedByPrecedent, isLikeUndecided } from "./precedent.js";

const unloaded = (life: Life) => {
  const process = processOf(life);
  return { process, rss: process.rss, work: null };
};

/** Without the daily load of the fixture. */
const withoutDay = ({ process, rss: { times, values }, work }: ReturnType<typeof unloaded>) => {
  const load = (time: number) => 20 * MIB * (1 - Math.cos((2 * Math.PI * time) / DAY));
  const rest = values.map((value, at) => value - load(times[at] as number));
  return { process, rss: { times, values: rest }, work };
};

test("an instance that was restarted at a busier hour fills its cache faster than its siblings did, and is not odd", () => {
  const judging = { endMs: END, isWeekOpen: false, z: 3.5, isLoadKnown: true, before: [] };
  const odd = (fillHours: number, leakMib: number) =>
    oddInstances(
      [0, 1, 2, 3, 4, 5].flatMap((instance) => {
        const mib = (hours: number) => 200 * (1 - Math.exp(-hours / fillHours));
        const life = { instance, version: "1.0", fromDaysAgo: 2, mib };
        const leaks = (fill: number) => (hours: number) => fill * mib(hours) + leakMib * hours;
        const restarted = { fromDaysAgo: 1.25, mib: leaks(1.8) };
        return instance === 3
          ? [
              { ...life, toDaysAgo: 1.25, mib: leaks(1) },
              { ...life, ...restarted },
            ].map(unloaded)
          : [unloaded(life)];
      }),
      judging,
    ).map(({ instance }) => instance);
  expect(odd(20, 0)).toEqual([]);
  expect(odd(20, 12)).toEqual(["app-3"]);
});

test("an earlier version is no precedent for the hours in which nobody read its memory", () => {
  const fills = (hours: number) => 6 * Math.min(hours, 8);
  const [old, young] = [
    three({ version: "1.0", fromDaysAgo: 9, toDaysAgo: 0.3, mib: fills }),
    three({ version: "1.1", fromDaysAgo: 0.3, mib: fills }),
  ];
  expect(diagnosisOf([...old, ...young]).verdict.kind).toBe("insufficient-evidence");
  const isSeen = (age: number) => age < HOUR || age > 6.9 * HOUR;
  const unseen = old.map(processOf).map((process) => {
    const { times, values } = process.rss;
    const kept = times.flatMap((time, at) => (isSeen(time - process.startedMs) ? [at] : []));
    const pick = (all: readonly number[]) => kept.map((at) => all[at] as number);
    return { ...process, rss: { times: pick(times), values: pick(values) } };
  });
  const window = { startMs: END - 14 * DAY, endMs: END };
  const processes = [...unseen, ...young.map(processOf)];
  expect(diagnoseService({ service: "shop", window, processes }, 50).verdict.kind).toBe(
    "insufficient-evidence",
  );
});

test("a version that goes on filling as the one before began has a larger cache; one that bends and goes on leaks", () => {
  const fills = (mib: number) => (hours: number) => Math.min(mib, 30 * hours);
  const found = (hours: number, mib: (hours: number) => number) =>
    diagnosisOf([
      ...three({ version: "1.0", fromDaysAgo: 4, toDaysAgo: hours / 24, mib: fills(120) }),
      ...three({ version: "1.1", fromDaysAgo: hours / 24, mib }),
    ]).verdict.kind;
  expect(found(12, fills(400))).not.toBe("python-leak");
  expect(found(34, (hours) => fills(120)(hours) + 10 * hours)).toBe("python-leak");
});

test("an instance that rises to its limit in one life after another leaks alone, however short its lives are", () => {
  const judging = { endMs: END, isWeekOpen: false, z: 3.5, isLoadKnown: false, before: [] };
  const odd = (mib: (hours: number) => number) =>
    oddInstances(
      [0, 1, 2, 3, 4, 5].flatMap((instance) =>
        [1.3, 0.9, 0.5].map((from) =>
          unloaded({
            ...{ instance, version: "1.0", fromDaysAgo: from },
            ...(from > 0.5 ? { toDaysAgo: from - 0.35 } : {}),
            mib: instance === 4 ? mib : () => 0,
          }),
        ),
      ),
      judging,
    ).map(({ instance }) => instance);
  expect(odd((hours) => 60 * hours)).toEqual(["app-4"]);
  expect(odd((hours) => 400 * (1 - Math.exp(-hours)))).toEqual([]);
});

test("warm-up is no room that a cache of the next version goes on filling", () => {
  const warm = (hours: number) => 100 * (1 - Math.exp(-hours / 0.3));
  const wave = (hours: number) => (hours < 30 ? 0.5 * hours : 15);
  const found = diagnosisOf([
    ...three({ version: "1.0", fromDaysAgo: 9, toDaysAgo: 4, mib: (h) => warm(h) + wave(h) }),
    ...three({ version: "1.1", fromDaysAgo: 4, mib: (h) => warm(h) + 0.6 * h }),
  ]);
  expect(found.verdict.kind).toBe("python-leak");
});

test("a pod that grew alone and ended is no leak, unless an instance of its name still runs", () => {
  const lives = (name: number, from: number, to: number | undefined): Life[] =>
    [0, 1, 2, 3, 4].map((at) => ({
      instance: name + at,
      version: name === 0 ? "1.0" : "1.1",
      fromDaysAgo: from,
      ...(to === undefined ? {} : { toDaysAgo: to }),
      mib: at === 2 && to !== undefined ? (hours: number) => 4 * hours : () => 0,
    }));
  const deployed = 1 / 24;
  const old = lives(0, 3, deployed);
  const ofPods = diagnosisOf([...old, ...lives(10, deployed, undefined)]);
  expect(ofPods.verdict.kind).not.toBe("python-leak");
  const kept = lives(10, deployed, undefined).map((life) => ({
    ...life,
    instance: life.instance - 10,
  }));
  expect(diagnosisOf([...old, ...kept]).verdict.kind).toBe("python-leak");
});

test("a leak beside a cache that bends while it fills is no cache with more room; one that fills in a straight line may be", () => {
  const found = (before: Life["mib"], since: Life["mib"], days: number) =>
    diagnosisOf([
      ...three({ version: "1.0", fromDaysAgo: 14, toDaysAgo: days, mib: before }),
      ...three({ version: "1.1", fromDaysAgo: days, mib: since }),
    ]).verdict.kind;
  const fills = (mib: number, hours: number) => (age: number) => mib * (1 - Math.exp(-age / hours));
  expect(found(fills(40, 6), (age) => fills(40, 6)(age) + age, 3)).toBe("python-leak");
  expect(found(fills(45, 8), (age) => fills(45, 8)(age) + 0.8 * age, 4)).toBe("python-leak");
  const ring = (hours: number) => (age: number) => 2 * Math.min(age, hours);
  expect(found(ring(24), ring(72), 2.5)).not.toBe("python-leak");
});

test("a version that rises to what the one before used is not accused within five days; one that rises beyond it is", () => {
  const found = (before: number, since: Life["mib"], days = 3) =>
    diagnosisOf([
      ...three({ version: "1.0", fromDaysAgo: 10, toDaysAgo: days, mib: () => before }),
      ...three({ version: "1.1", fromDaysAgo: days, mib: since }),
    ]).verdict.kind;
  expect(found(100, (hours) => 1.3 * hours)).not.toBe("python-leak");
  expect(found(60, (hours) => 1.3 * hours, 3.5)).toBe("python-leak");
  expect(found(100, (hours) => 2 * hours, 3.3)).toBe("python-leak");
  expect(found(100, (hours) => 0.7 * hours, 6)).toBe("python-leak");
});

test("a version that fell behind the one before first, and then catches up, does not leak", () => {
  const fills = (mib: number, hours: number) => (age: number) => mib * (1 - Math.exp(-age / hours));
  const found = (since: Life["mib"]) =>
    diagnosisOf([
      ...three({ version: "1.0", fromDaysAgo: 7.2, toDaysAgo: 3.2, mib: fills(120, 12) }),
      ...three({ version: "1.1", fromDaysAgo: 3.2, mib: since }),
    ]).verdict.kind;
  expect(found(fills(145, 24))).not.toBe("python-leak");
  expect(found((age) => fills(120, 12)(age) + 0.6 * age)).toBe("python-leak");
});

const judged = (shape: GroupGrowth["shape"], life: Omit<Life, "instance">) => {
  const judging = { endMs: END, isWeekOpen: false, z: 3.5, isLoadKnown: true, before: [] };
  const processes = three(life).map((each) => withoutDay(unloaded(each)));
  const growth = groupGrowth(processes, judging) as GroupGrowth;
  return { processes, growth: { ...growth, shape, isFatal: false } };
};

test("an earlier version that ended a little sooner clears one that goes on as it did; one that had filled by then does not", () => {
  const shape = (before: Life["mib"]) => {
    const mib = (hours: number) => 80 + 1.2 * hours;
    const { growth } = judged("leaking", { version: "1.1", fromDaysAgo: 2, mib });
    const life = { version: "1.0", fromDaysAgo: 3.8, toDaysAgo: 2, mib: before };
    return clearedByPrecedent(growth, [judged("filling", life)]).shape;
  };
  expect(shape((hours) => 60 * Math.log(1 + hours / 12))).toBe("undecided");
  expect(shape((hours) => 100 * (1 - Math.exp(-hours / 4)))).toBe("leaking");
});

test("a version that rises no further than an undecided one of which more was seen has no other verdict", () => {
  const isLike = (before: Partial<Life>, shape: GroupGrowth["shape"] = "undecided") => {
    const mib = (hours: number) => 10 * hours;
    const life = { version: "1.1", fromDaysAgo: 0.9, mib };
    const { growth, processes } = judged("leaking", life);
    const earlier = { ...life, version: "1.0", fromDaysAgo: 2, toDaysAgo: 1, ...before };
    return isLikeUndecided(growth, processes, [judged(shape, earlier)]);
  };
  expect(isLike({ mib: (hours) => 11 * hours })).toBe(true);
  expect(isLike({ mib: (hours) => 5 * hours })).toBe(false);
  expect(isLike({ mib: (hours) => 11 * hours, fromDaysAgo: 1.5 })).toBe(false);
  expect(isLike({ mib: (hours) => 11 * hours }, "leaking")).toBe(false);
});
