/** `tidemark.torch.by_module` with the real torch. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { execute, repository } from "../run.js";

test.skipIf(environment.torchPython === null)(
  "parameters, gradients, saved activations and peaks by module",
  async () => {
    const program = join(repository, "test/gpu/by_module_steps.py");
    const env = { PYTHONPATH: join(repository, "python") };
    const { status, stderr } = await execute([present(environment.torchPython), "-B", program], {
      env,
    });
    expect([status, /^OK$/m.test(stderr)], stderr).toEqual([0, true]);
  },
);
