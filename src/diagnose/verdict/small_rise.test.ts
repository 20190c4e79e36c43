/** Rises that are too small for a leak must not be reported as "memory is steady". */
import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "./verdict.js";

test("a certain but small rise of less than a minute asks for a minute", () => {
  const { verdict } = diagnose(
    evidenceOf("minute 0.67\nanonRssBytes 118 + 0.036/s\nsite work churns 1"),
  );
  expect(verdict.kind).toBe("insufficient-evidence");
  expect(verdict.summary).toMatch(
    /A slow leak looks the same; a window of \d+ min would settle it/,
  );
});

test("workers that each rise by little grow together, and are named", () => {
  const workers = [43, 44, 45, 46].flatMap((pid) =>
    ["anonRssBytes", "rssBytes"].map((metric) => `child ${pid} ${metric} 48 + 0.12/s`),
  );
  const { verdict, evidence } = diagnose(
    evidenceOf(`minute 0.8\nanonRssBytes 30\ntreeRssBytes 222 + 0.48/s\n${workers.join("\n")}`),
  );
  expect(verdict.kind).toBe("child-growth");
  expect(verdict.summary).toContain("All 4 child processes grow");
  expect(evidence.find(({ rule }) => rule === "children")?.says).toBe("leak");
});

test("workers that do not grow are not blamed for the growth of their parent", () => {
  const workers = [43, 44, 45].map((pid) => `child ${pid} anonRssBytes 48`).join("\n");
  const { evidence } = diagnose(
    evidenceOf(`minute 0.8\nanonRssBytes 30 + 0.4/s\ntreeRssBytes 174 + 0.4/s\n${workers}`),
  );
  expect(evidence.find(({ rule }) => rule === "children")?.detail).toBe(
    "The 3 child processes do not grow.",
  );
});
