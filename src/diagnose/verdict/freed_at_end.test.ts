import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "./verdict.js";

test("memory that is freed before the exit is reported at the level that it had, and at the end", () => {
  const evidence = evidenceOf("rssBytes 55\nanonRssBytes 45\nsite load fills 40 by 3s");
  const values = evidence.processes[0]?.series.values.get("rssBytes");
  values?.fill(9 * 2 ** 20, 0, 4);
  values?.fill(24 * 2 ** 20, values.length - 2);
  const { verdict, evidence: said } = diagnose(evidence);
  expect(verdict.summary).toContain("55 MiB resident, and 24 MiB at the end, after 60 s");
  expect(said.find(({ rule }) => rule === "trend")?.detail).not.toContain("flat since, at 24 MiB");
});

test("a job that keeps its results until it ends by itself may need them", () => {
  const evidence = evidenceOf("anonRssBytes 45 + 1/s\nsite collect keeps 1/s");
  const said = (isComplete: boolean) =>
    diagnose({ ...evidence, ...(isComplete ? { isComplete } : {}) }).verdict;
  expect(said(true).kind).toBe("python-leak");
  expect(said(true).summary).toMatch(/until its end, this is its working set, and no leak\.$/);
  expect(said(false).summary).not.toContain("working set");
});

test("what memory rose by at the start is counted from its minimum", () => {
  const evidence = evidenceOf("rssBytes 211\nanonRssBytes 200\nsite load fills 190 by 1s");
  evidence.processes[0]?.series.values.get("rssBytes")?.fill(9 * 2 ** 20, 0, 1);
  evidence.processes[0]?.series.values.get("rssBytes")?.fill(150 * 2 ** 20, 1, 30);
  const trend = diagnose(evidence).evidence.find(({ rule }) => rule === "trend");
  expect(trend?.detail).toBe(
    "RSS rose by 202 MiB at the start and has been flat since, at 211 MiB.",
  );
});
