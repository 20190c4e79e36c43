import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "../verdict/verdict.js";

test("the verdict names the function whose cache holds the memory", () => {
  const evidence = evidenceOf(
    "anonRssBytes 40 + 1/s\nsite curve keeps 1/s\nholder curve held=40 path=app type=dict",
  );
  const path = ["module app", "curve", "field of functools._lru_cache_wrapper"];
  const holders = evidence.holders?.map((one) => ({
    ...one,
    holder: one.holder && { ...one.holder, path },
  }));
  const { verdict } = diagnose({ ...evidence, ...(holders ? { holders } : {}) });
  expect(verdict.summary).toContain("; lru_cache of app.curve holds them; ");
});
