import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../../../test/run.js";

test("instructions are numbered as the headers that are found here have it", () => {
  const script = join(repository, "agent/layouts/generate_opcodes.py");
  const { status, stdout } = spawnSync("python3", [script, "--check"], { encoding: "utf8" });
  expect(stdout).toMatch(/^ok - /m);
  expect(status).toBe(0);
});
