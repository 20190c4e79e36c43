import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../../../test/run.js";

test("every table agrees with the headers found on this machine", () => {
  const script = join(repository, "agent/layouts/generate_outside.py");
  const { status, stdout } = spawnSync("python3", [script, "--check"], { encoding: "utf8" });
  expect(stdout).not.toMatch(/^not ok/m);
  expect(stdout).toMatch(/^ok - /m);
  expect(status).toBe(0);
}, 600_000);
