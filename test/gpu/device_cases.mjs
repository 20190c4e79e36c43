/**
 * Programs on the simulated allocator whose verdict is known, and look-alikes that must not be reported: the
 * counterpart of leakbench/cases for device memory. Each creates its own snapshot and states the expected result.
 */
import { CachingAllocator, OutOfMemory } from "./simulator.mjs";
import { snapshotOf } from "./snapshot_file.mjs";
import { randomWorkload, runOut, SITES, stackOf, trainingRun } from "./workload.mjs";

const MIB = 2 ** 20;
const TORCH = "/opt/venv/lib/python3.11/site-packages/torch";
const OPTIMIZER = stackOf(
  `_init_group ${TORCH}/optim/adamw.py:130`,
  `step ${TORCH}/optim/adamw.py:200`,
  "main /srv/train/main.py:24",
);

/** `culprit`: one of these functions must be the first suspect's own frame.
 * @typedef {{name: string, verdict: readonly string[], culprit?: readonly string[],
 *   negative?: boolean, make: () => object}} DeviceCase */

/** Runs steps as the profiler marks them. @param {CachingAllocator} allocator @param {number} count
 * @param {(step: number) => void} work */
function steps(allocator, count, work) {
  return Array.from({ length: count }, (_, step) => {
    allocator.wait(1000);
    const mark = {
      stage: "START",
      name: `ProfilerStep#${step}`,
      device: allocator.device,
      time_us: allocator.timeUs,
    };
    work(step);
    return mark;
  });
}

/** @param {() => void} work */
function untilFull(work) {
  try {
    work();
  } catch (error) {
    if (!(error instanceof OutOfMemory)) {
      throw error;
    }
  }
}

/** @param {Parameters<typeof trainingRun>[0]} settings */
function training(settings) {
  const { allocator, annotations } = trainingRun(settings);
  return snapshotOf([allocator], "plain", { annotations });
}

/** One output keeps the results of every operation of a forward pass. @param {boolean} kept */
function forwardPasses(kept) {
  const allocator = new CachingAllocator();
  const stacks = ["linear.py:125", "activation.py:70", "normalization.py:33"].map((place) =>
    stackOf(
      `forward ${TORCH}/nn/modules/${place}`,
      "forward /srv/train/model.py:41",
      "main /srv/train/main.py:20",
    ),
  );
  const annotations = steps(allocator, 24, () => {
    const results = stacks.map((frames) => allocator.allocate(4 * MIB, { frames }));
    if (!kept) {
      for (const result of results) {
        allocator.free(result);
      }
    }
  });
  return snapshotOf([allocator], "plain", { annotations });
}

/** Ever longer sequences in one key-value cache. */
function generation() {
  const allocator = new CachingAllocator();
  const frames = stackOf(
    "update /opt/venv/lib/python3.11/site-packages/transformers/cache_utils.py:450",
    "generate /srv/serve/app.py:12",
  );
  const annotations = steps(allocator, 40, () => void allocator.allocate(2 * MIB, { frames }));
  return snapshotOf([allocator], "plain", { annotations });
}

/** @param {(step: number) => number} sizeOf of what each step takes and gives back */
function varyingSteps(sizeOf) {
  const allocator = new CachingAllocator();
  const held = allocator.allocate(64 * MIB, { frames: SITES.parameter });
  const annotations = steps(allocator, 40, (step) => {
    const block = allocator.allocate(sizeOf(step), { frames: SITES.activation });
    allocator.free(allocator.allocate(MIB, { frames: OPTIMIZER }));
    allocator.free(block);
  });
  if (held.state !== "used") {
    throw new Error("the parameters went");
  }
  return snapshotOf([allocator], "plain", { annotations });
}

/** @type {readonly DeviceCase[]} */
export const DEVICE_CASES = [
  {
    name: "losses kept by the step",
    verdict: ["gpu-leak"],
    culprit: ["log_loss"],
    make: () => training({ steps: 24, leak: 4 * MIB }),
  },
  {
    name: "losses kept, steps by the optimizer alone",
    verdict: ["gpu-leak"],
    culprit: ["log_loss"],
    make: () => training({ steps: 24, leak: 2 * MIB, marks: false, scratch: 2 ** 18 }),
  },
  {
    name: "losses kept, the ring lost the beginning",
    verdict: ["gpu-leak"],
    culprit: ["log_loss"],
    make: () => training({ steps: 40, leak: 4 * MIB, ring: 900 }),
  },
  {
    name: "losses kept until the device is full",
    verdict: ["gpu-leak"],
    culprit: ["log_loss"],
    make: () => {
      const allocator = new CachingAllocator({ limit: 600 * MIB });
      const marks = /** @type {object[]} */ ([]);
      untilFull(() => {
        for (let step = 0; step < 1000; step++) {
          marks.push(
            ...steps(allocator, 1, () => {
              allocator.free(allocator.allocate(100 * MIB, { frames: SITES.activation }));
              allocator.allocate(12 * MIB, { frames: SITES.leak });
            }),
          );
        }
      });
      return snapshotOf([allocator], "plain", { annotations: marks });
    },
  },
  {
    name: "outputs kept with their graph",
    verdict: ["graph-retention"],
    culprit: ["forward"],
    make: () => forwardPasses(true),
  },
  {
    name: "pieces between blocks that stay",
    verdict: ["gpu-fragmentation"],
    make: () => snapshotOf([runOut()], "plain"),
  },
  {
    name: "pieces, in the oldest schema",
    verdict: ["gpu-fragmentation"],
    make: () => snapshotOf([runOut()], "legacy"),
  },
  {
    name: "loaded layer by layer until the device is full",
    verdict: ["gpu-capacity"],
    make: () => snapshotOf([runOut({ pieces: false })], "plain"),
  },
  {
    name: "a batch that is too large, after many that were not",
    verdict: ["gpu-capacity"],
    make: () => {
      const allocator = new CachingAllocator({ limit: 1000 * MIB });
      allocator.allocate(200 * MIB, { frames: SITES.parameter });
      const marks = steps(allocator, 20, (step) =>
        untilFull(() => {
          const batch = step === 19 ? 900 : 300;
          allocator.free(allocator.allocate(batch * MIB, { frames: SITES.activation }));
        }),
      );
      return snapshotOf([allocator], "plain", { annotations: marks });
    },
  },
  {
    name: "too large for the device at its first step",
    verdict: ["gpu-capacity"],
    make: () => {
      const allocator = new CachingAllocator({ limit: 700 * MIB });
      untilFull(() => {
        for (let layer = 0; layer < 8; layer++) {
          allocator.allocate(40 * MIB, { frames: SITES.parameter });
        }
        for (;;) {
          allocator.allocate(60 * MIB, { frames: SITES.activation });
        }
      });
      return snapshotOf([allocator], "pooled");
    },
  },
  {
    name: "another process takes what this one gave back",
    verdict: ["gpu-contention"],
    make: () => {
      const allocator = new CachingAllocator({ limit: 1000 * MIB });
      const held = allocator.allocate(100 * MIB, { frames: SITES.parameter });
      allocator.free(allocator.allocate(800 * MIB, { frames: SITES.activation }));
      allocator.emptyCache();
      allocator.limit = 500 * MIB;
      untilFull(() => void allocator.allocate(800 * MIB, { frames: SITES.activation }));
      allocator.free(held);
      return snapshotOf([allocator], "plain");
    },
  },
  {
    name: "a training that is in order",
    verdict: ["steady"],
    negative: true,
    make: () => training({ steps: 24 }),
  },
  {
    name: "growth below what counts",
    verdict: ["steady"],
    negative: true,
    make: () => training({ steps: 24, leak: 100_000 }),
  },
  {
    name: "forward passes whose results go",
    verdict: ["steady"],
    negative: true,
    make: () => forwardPasses(false),
  },
  {
    name: "a cache of keys and values that fills",
    verdict: ["steady"],
    negative: true,
    make: generation,
  },
  {
    name: "much reserved, little allocated: cache",
    verdict: ["steady", "insufficient-evidence"],
    negative: true,
    make: () => {
      const allocator = new CachingAllocator();
      allocator.allocate(30 * MIB, { frames: SITES.parameter });
      const large = Array.from({ length: 9 }, () =>
        allocator.allocate(500 * MIB, { frames: SITES.activation }),
      );
      for (const block of large) {
        allocator.free(block);
      }
      return snapshotOf([allocator], "plain");
    },
  },
  {
    name: "sizes that differ from step to step",
    verdict: ["steady"],
    negative: true,
    make: () => varyingSteps((step) => (20 + ((step * 37) % 50)) * MIB),
  },
  {
    name: "sizes that rise through the trace, and go each time",
    verdict: ["steady"],
    negative: true,
    make: () => varyingSteps((step) => (20 + step) * MIB),
  },
  {
    name: "allocations at random",
    verdict: ["steady", "insufficient-evidence"],
    negative: true,
    make: () => snapshotOf([randomWorkload(7, { events: 3000 }).allocator], "plain"),
  },
];
