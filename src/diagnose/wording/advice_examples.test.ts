import { expect, test } from "vitest";
import type { DiagnosisJson, HolderJson } from "../../model/documents/diagnosis_document.js";
import { ADVICE } from "./advice.js";
import { adviceExamples } from "./advice_examples.js";

const diagnosisOf = (id: string, path: string[] | null, kind = "python-leak") =>
  ({
    verdict: { kind },
    suspects: [{ advice: [{ id, text: "" }], ...(path && { holder: { path } as HolderJson }) }],
    advice: [],
  }) as unknown as DiagnosisJson;

test.each([
  [
    "TM-A002",
    ["module __main__", "monitor", ".term_counts"],
    /^monitor\.term_counts\[key\] = value\nwhile len\(monitor\.term_counts\) > LIMIT:\n {4}monitor\.term_counts\.pop\(next\(iter\(monitor\.term_counts\)\)\)$/,
  ],
  [
    "TM-A001",
    ["module app", "Bus", ".seen"],
    /^app\.Bus\.seen = collections\.deque\(maxlen=10_000\)\napp\.Bus\.seen\.append\(record\)$/,
  ],
  ["TM-A006", ["module app", "work", ".queue"], /^app\.work = Queue\(maxsize=1000\) /],
])("%s uses the program's own name", (id, path, after) => {
  expect(adviceExamples(diagnosisOf(id, path))).toMatchObject([
    { id, intro: "For example:", after: expect.stringMatching(after) },
  ]);
});

test.each([
  [22, "maxlen=10)"],
  [787, "maxlen=100)"],
  [5_000, "maxlen=1_000)"],
  [3_000_000, "maxlen=10_000)"],
])("a list of %i entries gets a bound that it has reached", (entries, bound) => {
  const given = diagnosisOf("TM-A001", ["module app", "seen"]);
  const [{ holder } = {}] = given.suspects;
  Object.assign(holder ?? {}, { entries });
  expect(adviceExamples(given)[0]?.after).toContain(bound);
});

test("without a name the example is called a template", () => {
  for (const path of [null, ["a frame"]]) {
    expect(adviceExamples(diagnosisOf("TM-A002", path))).toMatchObject([
      { intro: expect.stringContaining("template"), before: "stats[key] = value" },
    ]);
  }
  expect(adviceExamples(diagnosisOf("TM-A062", ["module app", "kept"]))).toMatchObject([
    { intro: expect.stringContaining("template"), before: "gunicorn app:app" },
  ]);
});

test("an undecided verdict has none", () => {
  expect(adviceExamples(diagnosisOf("TM-A002", null, "insufficient-evidence"))).toEqual([]);
});

test("what stands for the holder is in both pieces of code", () => {
  const standing = ADVICE.filter(({ stands }) => stands !== undefined);
  expect(standing.length).toBeGreaterThan(5);
  for (const { id, stands = "", before, after } of standing) {
    expect([id, before, after]).toEqual([
      id,
      expect.stringContaining(stands),
      expect.stringContaining(stands),
    ]);
  }
});
