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
