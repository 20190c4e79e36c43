/** Checks that the scripts in examples/claims still print the lines of docs/claims.md, apart from the figures. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { claimNames, pythonOf, quotedOutput, runClaim } from "../scripts/claims.mjs";
import { root } from "../scripts/setup.mjs";

/** Scripts that take more than a few seconds; `npm run claims` runs them. */
const slow = new Set(["tracemalloc_cost"]);

/** A line without its figures and without what depends on the installed packages. */
const words = (output: string) =>
  output
    .split("\n")
    .filter((line) => !line.includes("jemalloc"))
    .map((line) => line.replace(/\d[\d.,]*/g, "N").replace(/\s+/g, " "));

describe("each script confirms the page", () => {
  test.for(claimNames().filter((name) => !slow.has(name)))("%s", async (name, { skip }) => {
    const { output, shown, skipped } = await runClaim(name, pythonOf(name));
    skip(skipped, output);
    expect(shown, output).toBe(true);
    expect(words(output)).toEqual(words(quotedOutput(name) ?? ""));
  });
});

test("the page has a section for each script, and no other command", () => {
  const page = readFileSync(join(root, "docs/claims.md"), "utf8");
  const quoted = [...page.matchAll(/^\$ python examples\/claims\/(\w+)\.py$/gm)].map(
    ([, name]) => name,
  );
  expect(quoted.sort()).toEqual(claimNames());
});
