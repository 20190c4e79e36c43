/** `gpu PID` with real JAX on this machine's CPU: arrays and profile are real, a device's totals are simulated. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { GpuProcessJson } from "../../src/model/documents/gpu/gpu_process_document.js";
import { environment } from "../environment.js";
import { startPython, type Waiting } from "../python_program.js";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";

afterAll(removeScratch);

const ARRAYS = `
import jax, jax.numpy as jnp
class Trainer:
    def __init__(self):
        self.parameters = {"embedding": jnp.zeros((2000, 2000), jnp.float32), "bias": jnp.zeros(10)}
        self.moments = [jnp.ones((1500, 2000, 2), jnp.bfloat16) for _ in range(2)]
trainer = Trainer()
`;

/** A CPU in JAX reports no totals, and without totals it does not count as a device. */
const TOTALS = `
class Device:
    id = 0
    device_kind = "a CPU"
    memory_stats = staticmethod(lambda: {"bytes_limit": 1 << 30, "bytes_in_use": 40_000_000})
jax.local_devices = lambda: [Device]
`;

const start = (program: string): Promise<Waiting> =>
  startPython({ path: present(environment.torchPython) }, `${program}\nsay({})\nsay({})\n`);

async function gpuOf(pid: number): Promise<GpuProcessJson> {
  const { status, stdout, stderr } = await execute([tidemark, "gpu", String(pid), "--json"]);
  expect([status, stderr]).toEqual([0, ""]);
  return validate(stdout, "gpu_process") as unknown as GpuProcessJson;
}

describe.skipIf(environment.torchPython === null)("JAX", () => {
  test("its large arrays: shape, type, and holder", async () => {
    const program = await start(ARRAYS + TOTALS);
    try {
      const { devices, tensors } = await gpuOf(program.pid);
      expect(devices).toMatchObject([
        { framework: "jax", device: 0, totalBytes: 2 ** 30, allocatedBytes: 40_000_000 },
      ]);
      const rows = tensors?.map(({ bytes, shape, dtype, path }) => [bytes, shape, dtype, path]);
      const holder = ["module __main__", "trainer"];
      const moments = [...holder, ".moments", "list[...]"];
      expect(rows).toEqual([
        [16_000_000, [2000, 2000], "float32", [...holder, ".parameters", 'dict["embedding"]']],
        [12_000_000, [1500, 2000, 2], "bfloat16", moments],
        [12_000_000, [1500, 2000, 2], "bfloat16", moments],
      ]);
    } finally {
      await program.stop();
    }
  });

  test("on a CPU it has no device; its own profile is still written", async () => {
    const program = await start(ARRAYS);
    const profile = join(scratch(), "devices.pb.gz");
    try {
      const { devices, frameworks, tensors } = await gpuOf(program.pid);
      expect([devices, tensors]).toEqual([[], []]);
      expect(frameworks).toMatchObject([{ name: "jax", state: "cpu-only" }]);
      const { status, stderr } = await execute([
        tidemark,
        "gpu",
        String(program.pid),
        "-o",
        profile,
      ]);
      expect(status, stderr).toBe(0);
      expect(gunzipSync(readFileSync(profile)).includes("__init__")).toBe(true);
    } finally {
      await program.stop();
    }
  });
});
