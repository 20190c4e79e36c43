import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findOnPath } from "../command.mjs";
import { root } from "../setup.mjs";
import { makeVariables } from "./native.mjs";

test("replaces references, continued lines and spaces like make", () => {
  const text = "A := -x\nB = $(A)\nC := $(A) -y \\\n\t-z $(A)\nD := $(NOBODY)w\n";
  expect(Object.fromEntries(makeVariables(text))).toEqual({ A: "-x", C: "-x -y  \t-z -x", D: "w" });
});

test.skipIf(findOnPath("make") === undefined)("the build's flags are those of make", () => {
  const { stdout } = spawnSync("make", ["-C", join(root, "agent"), "-pn"], { encoding: "utf8" });
  const variables = makeVariables(readFileSync(join(root, "agent/Makefile"), "utf8"));
  for (const name of ["AGENT_FLAGS", "AGENT_LINK", "GUARD_FLAGS"]) {
    const ofMake = new RegExp(`^${name} := (.*)$`, "m").exec(stdout)?.[1];
    expect(words(variables.get(name)), name).toEqual(words(ofMake));
    expect(words(ofMake).length).toBeGreaterThan(3);
  }
});

/** @param {string | undefined} text */
function words(text = "") {
  return text.trim().split(/\s+/);
}
