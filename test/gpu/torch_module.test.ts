/** The Python helper on every interpreter of this machine, and with torch if it is installed. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { environment } from "../environment.js";
import { execute, repository } from "../run.js";

const program = join(repository, "test/gpu/watching.py");
const pythons = environment.interpreters
  .filter(({ chroot }) => chroot === undefined)
  .map(({ version, path }) => ({ name: version, path, torch: "" }));
if (environment.torchPython !== null) {
  pythons.push({ name: "with torch", path: environment.torchPython, torch: "with-torch" });
}

test.each(pythons)("tidemark.torch on Python $name", async ({ path, torch }) => {
  const env = { PYTHONPATH: join(repository, "python"), TIDEMARK_GPU_TEST: torch };
  const { status, stderr } = await execute([path, "-B", program], { env });
  expect([status, /^OK\b/m.test(stderr)], stderr).toEqual([0, true]);
});
