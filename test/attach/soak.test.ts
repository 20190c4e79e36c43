/** A service under load, attached and detached many times; `npm run bench -- soak` measures the same. */

import { fileURLToPath } from "node:url";
import { expect, inject, test } from "vitest";
import { soak } from "../../bench/soak_cycles.mjs";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";

test.runIf(environment.packagesPython)(
  "no request fails, the agent is loaded once, and nothing piles up",
  async () => {
    const service = fileURLToPath(
      new URL("../../bench/workloads/fastapi_service.py", import.meta.url),
    );
    const command = [present(environment.packagesPython), service];
    const cycles = inject("counts").soakCycles;
    const result = await soak({ command, cycles });
    expect(result.loaded.failed).toBe(0);
    expect(result.loaded.requests).toBeGreaterThan(100);
    expect(result.killed).toBe(Math.floor(cycles / 10));
    const { before, after } = result;
    expect(after.descriptors).toBe(before.descriptors);
    expect(after.agentMappings).toBe(before.agentMappings);
    expect(after.mappings).toBeLessThanOrEqual(before.mappings + 12); // the program's own heap may grow by this much
    expect(result.rssGainBytes).toBeLessThan(48 * 2 ** 20);
  },
);
