import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { diskFailure } from "./system_errors.js";

function failureOf(work: () => void): string | undefined {
  try {
    work();
  } catch (error) {
    return diskFailure(error)?.message;
  }
  throw new Error("it did not fail");
}

test("a full disk, and a place where no folder can be created, are no bugs of Tidemark", () => {
  expect(failureOf(() => writeFileSync("/dev/full", "text"))).toMatch(
    /^TM-E004 cannot write.*: no space left on device$/,
  );
  expect(failureOf(() => mkdtempSync("/dev/null/tidemark-"))).toBe(
    "TM-E004 cannot create a temporary folder in /dev/null: not a directory; set TMPDIR to a folder in which files can be created",
  );
  expect(failureOf(() => mkdirSync("/dev/null"))).toBe(
    "TM-E004 cannot write /dev/null: file already exists",
  );
});

test("any other error may be a bug", () => {
  expect(failureOf(() => readFileSync("/nowhere"))).toBeUndefined();
  expect(failureOf(() => JSON.parse("{"))).toBeUndefined();
});
