import { expect, test } from "vitest";
import { diagnose } from "../verdict/verdict.js";
import { evidenceOf } from "./evidence.fixture.js";

const verdictOf = (bound: number) =>
  diagnose(
    evidenceOf(`anonRssBytes 40 + 1/s\nsite produce keeps 1/s
      holder produce held=40 path=app>jobs type=collections.deque entries=900 bound=${bound} retained=60`),
  ).verdict;

test("a bound that no machine's memory reaches does not excuse growth", () => {
  expect(verdictOf(4000).kind).toBe("cache-plateau");
  expect(verdictOf(1_000_000_000).kind).toBe("python-leak");
  expect(verdictOf(1_000_000_000).summary).not.toContain("filling");
});
