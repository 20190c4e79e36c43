import { expect, test } from "vitest";
import { evidenceOf } from "./evidence.fixture.js";
import { moreObjects } from "./object_growth.js";

const MIB = 2 ** 20;

function typesThatGrew(type: string, objects: number[], site: string): string[] {
  const { sites } = evidenceOf(`anonRssBytes 40\nsite work ${site}`);
  const types = [{ type, objects, bytes: [MIB, 28 * MIB] }];
  const census = { pid: 42, timesMs: [0, 30_000], types };
  return moreObjects({ census, ...(sites ? { sites } : {}) })?.types.map((one) => one.type) ?? [];
}

test("a large text that only the last census shows is a copy for a moment", () => {
  expect(typesThatGrew("str", [50, 54], "churns 5")).toEqual([]);
});

test("a text that grows is in a site, and so are many objects", () => {
  expect(typesThatGrew("str", [50, 50], "keeps 1/s")).toEqual(["str"]);
  expect(typesThatGrew("str", [50, 90_000], "churns 5")).toEqual(["str"]);
});

test("memory that a library keeps for its objects need not be in a site", () => {
  expect(typesThatGrew("polars.DataFrame", [1, 2], "churns 5")).toEqual(["polars.DataFrame"]);
});
