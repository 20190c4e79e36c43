import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../../../test/run.js";

test("instruction numbers agree with the headers found on this machine", () => {
  const script = join(repository, "agent/layouts/generate_opcodes.py");
  const { status, stdout } = spawnSync("python3", [script, "--check"], { encoding: "utf8" });
  expect(stdout).toMatch(/^ok - /m);
  expect(status).toBe(0);
});
