/**
 * `gpu PID` and `import` with TensorFlow itself, on this machine's CPU: the allocator, its figures and its trace are
 * real. A GPU has the same functions, `get_memory_info` and the profiler.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, inject, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { GpuProcessJson } from "../../src/model/documents/gpu/gpu_process_document.js";
import type { SummaryJson } from "../../src/model/documents/summary_document.js";
import { environment } from "../environment.js";
import { startPython } from "../python_program.js";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, repository, scratch, tidemark } from "../run.js";

afterAll(removeScratch);

const MIB = 2 ** 20;
/** TensorFlow counts the memory of a CPU only with this allocator. */
const COUNTED = { TF_CPU_ALLOCATOR_USE_BFC: "1", TF_CPP_MIN_LOG_LEVEL: "3" };
/** Absent in an environment that an older set-up made. */
const python = environment.tensorflowPython ?? null;

/** Says what the allocator itself reports, before and after it frees a tensor. */
const HELD = `
import tensorflow as tf
held = [tf.zeros((8, 1024, 1024)), tf.zeros((4, 1024, 1024))]
say(tf.config.experimental.get_memory_info("CPU:0"))
del held[0]
say(tf.config.experimental.get_memory_info("CPU:0"))
say({})
`;

async function gpuOf(pid: number): Promise<GpuProcessJson> {
  const { status, stdout, stderr } = await execute([tidemark, "gpu", String(pid), "--json"]);
  expect([status, stderr]).toEqual([0, ""]);
  return validate(stdout, "gpu_process") as unknown as GpuProcessJson;
}

describe.skipIf(python === null || inject("counts").tensorflowPrograms === 0)(
  "TensorFlow itself (npm run test:long, or TIDEMARK_TEST_TENSORFLOW=1)",
  () => {
    test("gpu PID: what its allocator reports, before and after a tensor is freed", async () => {
      const program = await startPython({ path: present(python) }, HELD, COUNTED);
      try {
        const expectation = program.said as { current: number; peak: number };
        expect(expectation.current).toBeGreaterThanOrEqual(48 * MIB);
        const before = await gpuOf(program.pid);
        expect(before.frameworks).toMatchObject([{ name: "tensorflow", state: "used" }]);
        expect(before.devices).toMatchObject([
          {
            framework: "tensorflow",
            device: -1,
            allocatedBytes: expectation.current,
            peakAllocatedBytes: expectation.peak,
          },
        ]);
        const freed = (await program.go()) as { current: number; peak: number };
        expect(freed.current).toBe(expectation.current - 32 * MIB);
        const after = await gpuOf(program.pid);
        expect(after.devices).toMatchObject([
          { allocatedBytes: freed.current, peakAllocatedBytes: freed.peak },
        ]);
        const text = await execute([tidemark, "gpu", String(program.pid)]);
        expect(text.stdout).toMatch(
          /Host memory +\/device:CPU:0, tensorflow\n +Allocated +1\d\.\d MiB/,
        );
      } finally {
        await program.stop();
      }
    });

    test("gpu PID: a program whose host memory TensorFlow does not count", async () => {
      const program = await startPython(
        { path: present(python) },
        "import tensorflow as tf\nheld = tf.zeros((1024, 1024))\nsay({})",
        // On CPUs where TensorFlow uses oneDNN by itself, oneDNN's allocator counts host memory.
        { TF_CPP_MIN_LOG_LEVEL: "3", TF_ENABLE_ONEDNN_OPTS: "0" },
      );
      try {
        const { devices, frameworks } = await gpuOf(program.pid);
        expect([devices, frameworks]).toMatchObject([
          [],
          [{ name: "tensorflow", state: "cpu-only" }],
        ]);
        const { stdout } = await execute([tidemark, "gpu", String(program.pid)]);
        expect(stdout).toMatch(/no device here \(it counts host memory only with TF_CPU_/);
      } finally {
        await program.stop();
      }
    });

    test("import: a trace that its profiler writes now", async () => {
      const folder = scratch();
      const script = join(repository, "test/data/import/tensorflow_trace.py");
      const traced = await execute([present(python), script, folder], { env: COUNTED });
      expect(traced.status, traced.stderr).toBe(0);
      const name = readdirSync(folder, { recursive: true }).find((path) =>
        String(path).endsWith(".xplane.pb"),
      );
      const recording = join(folder, "trace.tidemark");
      const imported = await execute([
        ...[tidemark, "import", join(folder, String(name)), "-o", recording],
      ]);
      expect(imported.status, imported.stderr).toBe(0);
      const { stdout } = await execute([tidemark, "summary", recording, "--json"]);
      const { sites }: SummaryJson = JSON.parse(stdout);
      const named = sites.map(({ stack }) => stack[0]?.function ?? "");
      expect(named).toContain("(allocated before the trace)");
      expect(named.some((operation) => operation.startsWith("adam/"))).toBe(true);
      // Two dense layers of 1024: their weights, moments and gradients are at least 4 MiB each.
      expect(sites.reduce((sum, site) => sum + site.liveBytesAtPeak, 0)).toBeGreaterThan(16 * MIB);
    });
  },
);
