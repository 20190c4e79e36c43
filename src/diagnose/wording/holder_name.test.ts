import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "../verdict/verdict.js";
import { nameOf, outsideLibrary } from "./holder_name.js";

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

test("the parts of a DataFrame or of an array are not part of its name", () => {
  const path = [
    "module __main__",
    "h",
    ".frame",
    "._mgr",
    "field of pandas.core.internals.managers.BlockManager",
    "tuple[...]",
    "field of pandas.core.internals.blocks.NumpyBlock",
    "field of numpy.ndarray",
  ];
  expect(nameOf({ path })).toBe("h.frame");
  expect(outsideLibrary(path)).toEqual(["module __main__", "h", ".frame"]);
  const views = ["module __main__", "view", "field of numpy.ndarray"];
  expect(nameOf({ path: views })).toBe("view");
  const local = ["module __main__", "scratch", "field of _thread._local"];
  expect(outsideLibrary(local)).toEqual(local);
});
