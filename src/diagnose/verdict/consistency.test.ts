/** What must hold for every verdict, whatever the evidence: checked on generated series and sites. */
import { describe, expect, test } from "vitest";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import type { Evidence } from "../evidence/evidence.js";
import { afterFirstThird } from "../series/growth.js";
import { readingsOf } from "../series/readings.js";
import { membersOf, totalGrowth } from "../series/total_growth.js";
import { theilSen } from "../series/trend.js";
import { diagnose } from "./verdict.js";

const MIB = 2 ** 20;
const CALM = new Set(["steady", "warm-up", "cache-plateau"]);
const CASES = 240;

/** Repeatable numbers from 0 to 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** RSS of a program that does one thing or several at a time; sites that match it, contradict it, or are missing. */
function generated(seed: number): Evidence {
  const random = randomNumbers(seed);
  const pick = <Item>(items: readonly Item[]): Item =>
    items[Math.floor(random() * items.length)] as Item;
  const minutes = pick([0.33, 0.5, 1, 3.3, 10]);
  const seconds = minutes * 60;
  const rate = pick([0, 0.01, 0.05, 0.15, 0.5, 2]);
  const site = pick([
    "",
    `site record keeps ${rate}/s`,
    `site cache fills ${10 * rate} by ${Math.round(seconds / 2)}s`,
    "site parse churns 30",
    `site append swells ${rate}/s domain=native`,
    `site record keeps ${rate}/s samples=5`,
    `site record keeps ${rate}/s\nsite other keeps ${rate / 3}/s\nsite parse churns 20`,
  ]);
  const ledger = pick(["", `ledger.malloc.used 9 + ${rate}/s`, `ledger.malloc.free 9 + ${rate}/s`]);
  const evidence = evidenceOf(
    `minute ${minutes}\nanonRssBytes 60\nrssBytes 60\n${site}\n${ledger}`,
  );
  const [process] = evidence.processes;
  const level = pick([40, 150, 600]) * MIB;
  const noise = pick([0, 0.2, 3]) * MIB;
  const burst = pick([0, 3, 6, 15]) * 1000;
  const fullMs = pick([0.2, 0.5, 5]) * seconds * 1000;
  const startMs = evidence.window.startMs;
  for (const metric of ["rssBytes", "anonRssBytes"] as const) {
    const values = process?.series.values.get(metric);
    let walk = 0;
    process?.series.timesMs.forEach((time, i) => {
      const ms = Math.min(time - startMs, fullMs);
      const worked = burst > 0 ? Math.floor(ms / burst) * burst : ms;
      walk = 0.8 * walk + noise * (random() - 0.5);
      if (values) {
        values[i] = level + (rate * MIB * worked) / 1000 + walk;
      }
    });
  }
  return evidence;
}

const cases = Array.from({ length: CASES }, (_, seed) => {
  const evidence = generated(seed + 1);
  return { seed: seed + 1, evidence, document: diagnose(evidence) };
});

function rssOf({ processes: [process] }: Evidence) {
  if (process === undefined) {
    throw new Error("the evidence has no process");
  }
  return { process, rss: readingsOf(process.series, "rssBytes", process.endedMs) };
}

/** By plain Theil-Sen on the readings, as a reader of the chart would work it out. */
function growsPlainly(evidence: Evidence): boolean {
  const settled = afterFirstThird(rssOf(evidence).rss);
  const from = settled.times[0] ?? 0;
  const span = (settled.times.at(-1) ?? 0) - from;
  const middle = settled.times.findIndex((time) => time >= from + span / 2);
  const whole = theilSen(settled.times, settled.values);
  const late = theilSen(settled.times.slice(middle), settled.values.slice(middle));
  const least = Math.max(5 * MIB, 0.02 * (settled.values.at(-1) ?? 0)) / span;
  return whole.low > least && late.low > least;
}

const names = (wrong: (one: { evidence: Evidence; document: DiagnosisJson }) => boolean) =>
  cases.filter(wrong).map(({ seed, document }) => `${seed}: ${document.verdict.summary}`);

describe("of generated programs", () => {
  test("none that grows over the last two thirds and over the last third is called harmless", () => {
    expect(cases.filter(({ evidence }) => growsPlainly(evidence)).length).toBeGreaterThan(20);
    expect(
      names(({ evidence, document }) => growsPlainly(evidence) && CALM.has(document.verdict.kind)),
    ).toEqual([]);
  });

  test("a slow, even rise is not called harmless, and noise around a level is", () => {
    const verdictOf = (seed: number, mibPerHour: number, noiseKib: number) => {
      const random = randomNumbers(seed);
      const evidence = evidenceOf(`minute ${2.5 + 5 * random()}\nsite parse churns 2`);
      const level = 10 + 90 * random();
      const pages = (mib: number) => Math.round(mib * 256) * 4096;
      for (const metric of ["rssBytes", "anonRssBytes"] as const) {
        const values = evidence.processes[0]?.series.values.get(metric);
        evidence.processes[0]?.series.timesMs.forEach((time, i) => {
          const hours = (time - evidence.window.startMs) / 3_600_000;
          const noise = ((random() - 0.5) * noiseKib) / 1024;
          values?.fill(pages(level + mibPerHour * hours + noise), i, i + 1);
        });
      }
      return diagnose(evidence).verdict.kind;
    };
    const seeds = Array.from({ length: 20 }, (_, seed) => seed + 1);
    expect(seeds.filter((seed) => CALM.has(verdictOf(seed, 12 + seed, 8)))).toEqual([]);
    expect(seeds.filter((seed) => !CALM.has(verdictOf(seed, 0, 40 * seed)))).toEqual([]);
    expect(seeds.filter((seed) => !CALM.has(verdictOf(seed, 2, 8)))).toEqual([]);
  });

  test("steady programs are called steady, growing ones are named, and a few stay undecided", () => {
    const kinds = new Set(cases.map(({ document }) => document.verdict.kind));
    expect([...kinds]).toEqual(
      expect.arrayContaining(["steady", "warm-up", "python-leak", "insufficient-evidence"]),
    );
  });

  test("the header's growth equals the verdict's if the whole program grows", () => {
    expect(
      names(({ evidence, document }) => {
        const { process } = rssOf(evidence);
        const header = totalGrowth(process, membersOf(evidence.processes));
        return (
          growsPlainly(evidence) &&
          Math.abs(header.slope * 3_600_000 - document.growth.bytesPerHour) > 1
        );
      }),
    ).toEqual([]);
  });

  test("the rate is within its interval, and shares add up", () => {
    expect(
      names(({ document: { growth, alsoFound = [], suspects } }) => {
        const share = alsoFound.reduce((sum, one) => sum + one.share, 0);
        return (
          growth.low > growth.bytesPerHour ||
          growth.high < growth.bytesPerHour ||
          share > 1 ||
          alsoFound.some((one) => one.share < 0.1 && one.kind !== "handle-leak") ||
          suspects.some((one) => one.share < 0 || one.share > 1)
        );
      }),
    ).toEqual([]);
  });

  test("an undecided verdict states how much more time it needs", () => {
    expect(
      names(
        ({ document: { verdict } }) =>
          verdict.kind === "insufficient-evidence" &&
          !/\d+ (?:ms|s|min|h)\b.*would/.test(verdict.summary) &&
          !/use a longer window/.test(verdict.summary) &&
          !/an agent or a ledger is needed/.test(verdict.summary),
      ),
    ).toEqual([]);
  });
});
