import { expect, test } from "vitest";
import { holderPathText } from "./holder_path.js";

test("what has no name in the program is described", () => {
  expect(holderPathText(["module app", "cache", "dict[...]", ".rows", "list[...]"])).toBe(
    "module app → cache → a value of a dict → .rows → an item of a list",
  );
  expect(holderPathText(["module app", "page", "field of functools._lru_cache_wrapper"])).toBe(
    "module app → page → inside a functools._lru_cache_wrapper",
  );
  expect(holderPathText(["module app", "jobs", "field of _io.BytesIO", 'dict["key"]'])).toBe(
    'module app → jobs → inside an _io.BytesIO → dict["key"]',
  );
});
