/** The rules about devices, on heartbeats of a recording and on what snapshots grew by; whole snapshots are in
 * test/gpu/device_cases.test.ts. */

import { describe, expect, test } from "vitest";
import type { FrameJson } from "../../model/documents/documents.js";
import type {
  GpuCategory,
  GpuDeviceJson,
  GpuGrowthJson,
} from "../../model/documents/gpu/gpu_document.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { evidenceOfSnapshots } from "../evidence/snapshot_evidence.js";
import { verdict } from "../verdict/verdict.fixture.js";
import { diagnose } from "../verdict/verdict.js";

/** A device of 80 GiB: what it has free, what is reserved and allocated, MiB; the rest is others'. */
const DEVICE = "anonRssBytes 900\ngpu.0.totalBytes 81920";
const HELD = "gpu.0.reservedBytes 40000\ngpu.0.freeBytes 41300";

describe("gpu-leak", () => {
  test("allocated device memory that rises while host memory does not", () => {
    const document = diagnose(evidenceOf(`${DEVICE}\n${HELD}\ngpu.0.allocatedBytes 20000 + 2/s`));
    expect(document.verdict.kind).toBe("gpu-leak");
    expect(document.verdict.summary).toContain("a growing amount of memory on device 0");
    expect(document.growth.bytesPerHour / 2 ** 20).toBeCloseTo(7200, -2);
    expect(document.advice.map(({ id }) => id)).toEqual(["TM-A106"]);
  });

  test("growth of 10 MB counts on a device of any size, smaller growth does not", () => {
    expect(verdict(`${DEVICE}\n${HELD}\ngpu.0.allocatedBytes 60000 + 0.5/s`)).toBe("gpu-leak");
    expect(verdict(`${DEVICE}\n${HELD}\ngpu.0.allocatedBytes 60000 + 0.05/s`)).toBe("steady");
  });

  test("reserved memory that rises without allocated memory is cache", () => {
    const text = `${DEVICE}\ngpu.0.allocatedBytes 20000\ngpu.0.reservedBytes 25000 + 20/s`;
    expect(verdict(text)).toBe("steady");
  });

  test("a loaded model is not a leak", () => {
    expect(verdict(`${DEVICE}\n${HELD}\ngpu.0.allocatedBytes 1 steps 30000 at 30s`)).toBe("steady");
  });

  test("of a child", () => {
    const text = `${DEVICE}\nchild 43 gpu.0.allocatedBytes 20000 + 2/s`;
    expect(diagnose(evidenceOf(text)).verdict.summary).toMatch(/process 43 holds a growing amount/);
  });
});

describe("out of memory", () => {
  const errors = "gpu.0.outOfMemory 0 steps 2 at 20s";

  test("pieces between blocks in use", () => {
    const text = `${DEVICE}\n${HELD}\n${errors}\ngpu.0.allocatedBytes 30000\ngpu.0.splitBytes 9000\ngpu.0.fragmentationRatio 0.22`;
    expect(verdict(text)).toBe("gpu-fragmentation");
  });

  test("reserved minus allocated without pieces is not fragmentation", () => {
    const text = `${DEVICE}\n${HELD}\n${errors}\ngpu.0.allocatedBytes 3000\ngpu.0.splitBytes 90\ngpu.0.fragmentationRatio 0.002`;
    expect(verdict(text)).not.toBe("gpu-fragmentation");
  });

  test("other processes hold it", () => {
    const text = `${DEVICE}\n${errors}\ngpu.0.allocatedBytes 30000\ngpu.0.reservedBytes 31000\ngpu.0.freeBytes 200\ngpu.0.splitBytes 100\ngpu.0.fragmentationRatio 0.003`;
    const { verdict: found } = diagnose(evidenceOf(text));
    expect([found.kind, found.summary]).toEqual([
      "gpu-contention",
      expect.stringContaining("62 %"),
    ]);
  });

  test("a context is not contention; the job needs the whole device", () => {
    const text = `${DEVICE}\n${errors}\ngpu.0.allocatedBytes 78000\ngpu.0.peakAllocatedBytes 79000\ngpu.0.reservedBytes 80500\ngpu.0.freeBytes 600`;
    expect(verdict(text)).toBe("gpu-capacity");
  });

  test("an error is a fact in a window too short for trends", () => {
    const text = `minute 0.1\n${DEVICE}\ngpu.0.outOfMemory 0 steps 1 at 2s\ngpu.0.allocatedBytes 78000\ngpu.0.peakAllocatedBytes 79000`;
    expect(verdict(text)).toBe("gpu-capacity");
    expect(verdict(text.replace("gpu.0.outOfMemory 0 steps 1 at 2s", ""))).toBe(
      "insufficient-evidence",
    );
  });
});

describe("gpu-graph", () => {
  const TORCH = "/env/lib/python3.12/site-packages/torch/nn";
  const ofPass = (line: number) => [
    frame("linear", `${TORCH}/functional.py`, 100 + line),
    frame("Module._call_impl", `${TORCH}/modules/module.py`, 1500),
    frame("Model.forward", "/app/model.py", line),
    frame("train", "/app/train.py", 40),
  ];
  const own = [frame("remember", "/app/train.py", 52), frame("train", "/app/train.py", 40)];

  test("results of several operations of a pass are kept after each step", () => {
    const { verdict: found, suspects } = judged([keeps(2, ofPass(10)), keeps(3, ofPass(11))]);
    expect(found.kind).toBe("graph-retention");
    expect(found.summary).toContain("model.py");
    expect(suspects[0]?.advice.map(({ id }) => id)).toEqual(["TM-A106"]);
  });

  test("one tensor per step is kept alone, whatever created it", () => {
    expect(judged([keeps(2, ofPass(10))]).verdict.kind).toBe("gpu-leak");
  });

  test("most of the growth is elsewhere", () => {
    const growth = [keeps(1, ofPass(10)), keeps(1, ofPass(11)), keeps(6, own)];
    expect(judged(growth).verdict.kind).toBe("gpu-leak");
  });

  test("gradients belong to parameters, whichever pass made them", () => {
    const growth = [keeps(2, ofPass(10), "gradients"), keeps(3, ofPass(11), "gradients")];
    expect(judged(growth).verdict.kind).toBe("gpu-leak");
  });

  test("functions named forward are a pass only if PyTorch calls them", () => {
    const forward = (line: number) => [frame("Queue.forward", "/app/queue.py", line)];
    expect(judged([keeps(2, forward(10)), keeps(3, forward(11))]).verdict.kind).toBe("gpu-leak");
  });

  test("nothing is kept", () => {
    expect(judged([]).verdict.kind).not.toBe("graph-retention");
  });
});

const STEPS = 20;

function frame(name: string, file: string, line: number): FrameJson {
  return { function: name, file, line, kind: "python" };
}

/** MiB that a site keeps a step. */
function keeps(
  mib: number,
  stack: FrameJson[],
  category: GpuCategory = "activations",
): GpuGrowthJson {
  const bytesPerStep = mib * 2 ** 20;
  const bytes = bytesPerStep * STEPS;
  return {
    ...{ stack, bytes, allocations: STEPS, category, sure: true },
    ...{ bytesPerStep, steps: STEPS, startBytes: 0 },
  };
}

/** The diagnosis of a snapshot of one device with that growth, and nothing else wrong. */
function judged(growth: GpuGrowthJson[]) {
  const bytes = growth.reduce((sum, site) => sum + site.bytes, 64 * 2 ** 20);
  const device: GpuDeviceJson = {
    device: 0,
    segments: 4,
    events: 1000,
    complete: true,
    end: {
      reservedBytes: bytes,
      allocatedBytes: bytes,
      activeBytes: bytes,
      requestedBytes: bytes,
    },
    peak: {
      requestedBytes: bytes,
      reservedBytes: bytes,
      eventIndex: 1000,
      timeUs: 0,
      sites: growth,
    },
    timeline: [],
    highestReservedBytes: bytes,
    waste: { roundingBytes: 0, splitBytes: 0, cachedBytes: 0 },
    largestFreeBytes: 0,
    fragmentation: [],
    outOfMemory: [],
    cacheReleases: { count: 0, beforeRequest: 0 },
    sites: growth,
    stepsFrom: "optimizer",
    growth,
    disagreements: { count: 0, first: [] },
  };
  const snapshot = {
    ...{ schema: "tidemark.gpu/1" as const, file: "snapshot.pickle", devices: [device] },
    ...{ advice: [], limits: [] },
  };
  return diagnose(evidenceOfSnapshots([snapshot]));
}
