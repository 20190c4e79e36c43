/** Programs for the simulated allocator, generated from a seed. */
import { CachingAllocator, OutOfMemory } from "./simulator.mjs";

const MIB = 2 ** 20;

/** xorshift32, which gives the same numbers everywhere. @param {number} seed */
export function randomFrom(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A stack, leaf first, whose frames are shared with other stacks as in a real trace. */
const known = new Map();
/** @param {...string} frames "function file:line" */
export function stackOf(...frames) {
  return Object.freeze(
    frames.map((text) => {
      const frame = known.get(text) ?? frameOf(text);
      known.set(text, frame);
      return frame;
    }),
  );
}

/** @param {string} text */
function frameOf(text) {
  const [, name = "", filename = "", line = "0"] = /^(\S+) (.*):(\d+)$/.exec(text) ?? [];
  return Object.freeze({ name, filename, line: Number(line) });
}

/**
 * Allocates and frees at random: sizes of all kinds, streams, pools, pending frees, emptied caches.
 * @param {number} seed
 * @param {{events: number, ring?: number, limit?: number, expandable?: boolean, device?: number,
 *   streams?: number, pools?: number}} settings
 */
export function randomWorkload(
  seed,
  { events, ring, limit, expandable, device, streams = 3, pools = 2 },
) {
  const random = randomFrom(seed);
  const allocator = new CachingAllocator({ ring, limit, expandable, device });
  /** @type {import("./simulator.mjs").Block[]} */
  const live = [];
  const stacks = Array.from({ length: 40 }, (_, site) =>
    stackOf(
      "c10::cuda::malloc ??:0",
      ...Array.from(
        { length: 1 + (site % 7) },
        (_, depth) => `layer${depth} /site-packages/torch/nn/modules/m${site % 5}.py:${10 + depth}`,
      ),
      `site${site} /srv/train.py:${100 + site}`,
      "main /srv/train.py:7",
    ),
  );
  while (allocator.events < events) {
    const choice = random();
    if (choice < 0.5 || live.length === 0) {
      const size = Math.ceil(random() ** 4 * 64 * MIB);
      const site = Math.floor(random() * stacks.length);
      try {
        live.push(
          allocator.allocate(size, {
            stream: Math.floor(random() * streams) * 0x5500,
            pool: random() < 0.8 ? "0,0" : `0,${1 + Math.floor(random() * pools)}`,
            frames: stacks[site],
          }),
        );
      } catch (error) {
        if (!(error instanceof OutOfMemory)) {
          throw error;
        }
        for (const block of live.splice(0, Math.ceil(live.length / 2))) {
          allocator.free(block);
        }
      }
    } else if (choice < 0.96) {
      const [block] = live.splice(Math.floor(random() * live.length), 1);
      if (block && random() < 0.2) {
        allocator.recordStream(block, 0x9900);
      }
      if (block) {
        allocator.free(block, stacks[0]);
      }
    } else if (choice < 0.985) {
      allocator.finishStreams();
    } else if (choice < 0.992) {
      allocator.emptyCache();
    } else {
      allocator.markSnapshot();
    }
  }
  return { allocator, live };
}

const MODEL = "/srv/train/model.py";
const TORCH = "/opt/venv/lib/python3.11/site-packages/torch";

/** The stacks of a training program, leaf first. */
export const SITES = {
  parameter: stackOf(
    `_apply ${TORCH}/nn/modules/module.py:900`,
    `build ${MODEL}:12`,
    "main /srv/train/main.py:5",
  ),
  activation: stackOf(
    `forward ${TORCH}/nn/modules/linear.py:125`,
    `forward ${MODEL}:41`,
    "main /srv/train/main.py:20",
  ),
  temporary: stackOf(
    `gelu ${TORCH}/nn/functional.py:9`,
    `forward ${MODEL}:44`,
    "main /srv/train/main.py:20",
  ),
  gradient: stackOf(
    "torch::autograd::AccumulateGrad::apply ??:0",
    "torch::autograd::Engine::thread_main ??:0",
  ),
  optimizer: stackOf(
    `_init_group ${TORCH}/optim/adamw.py:130`,
    `step ${TORCH}/optim/adamw.py:200`,
    "main /srv/train/main.py:24",
  ),
  leak: stackOf(
    `clone ${TORCH}/_tensor.py:50`,
    "log_loss /srv/train/metrics.py:17",
    "main /srv/train/main.py:26",
  ),
};

/**
 * A training program with known figures: `layers` parameters of `size` bytes, their activations,
 * gradients and Adam's two states; `leak` more bytes kept at each step, and `scratch` bytes allocated and
 * freed by the optimizer.
 * @param {{steps: number, layers?: number, size?: number, leak?: number, ring?: number, device?: number, marks?: boolean, scratch?: number}} settings
 */
export function trainingRun({
  steps,
  layers = 6,
  size = 4 * MIB,
  leak = 0,
  ring,
  device,
  marks = true,
  scratch = 0,
}) {
  const allocator = new CachingAllocator({ ring, device });
  const annotations = [];
  const parameters = Array.from({ length: layers }, () =>
    allocator.allocate(size, { frames: SITES.parameter }),
  );
  const kept = [];
  const state = [];
  for (let step = 0; step < steps; step++) {
    allocator.wait(1000);
    if (marks) {
      const name = `ProfilerStep#${step}`;
      annotations.push({
        stage: "START",
        name,
        device: allocator.device,
        time_us: allocator.timeUs,
      });
    }
    const activations = parameters.map(() => {
      const activation = allocator.allocate(2 * size, { frames: SITES.activation });
      allocator.free(allocator.allocate(size / 2, { frames: SITES.temporary }));
      return activation;
    });
    const gradients = activations.reverse().map((activation) => {
      const gradient = allocator.allocate(size, { frames: SITES.gradient });
      allocator.free(activation, SITES.gradient);
      return gradient;
    });
    if (step === 0) {
      for (let state_ = 0; state_ < 2 * layers; state_++) {
        state.push(allocator.allocate(size, { frames: SITES.optimizer }));
      }
    }
    if (scratch > 0) {
      allocator.free(allocator.allocate(scratch, { frames: SITES.optimizer }));
    }
    for (const gradient of gradients) {
      allocator.free(gradient);
    }
    if (leak > 0) {
      kept.push(allocator.allocate(leak, { frames: SITES.leak }));
    }
  }
  return { allocator, annotations };
}

/** Fills a device and frees every second block: the free memory suffices for the last allocation, but only in
 * pieces. With `pieces` false nothing is freed first: the device is simply too small. */
export function runOut({ pieces = true } = {}) {
  const limit = 1000 * MIB;
  const allocator = new CachingAllocator({ limit });
  const blocks = [];
  while (allocator.totals.reserved + 40 * MIB <= limit) {
    const whole = allocator.allocate(40 * MIB, { frames: SITES.activation });
    allocator.free(whole);
    blocks.push(allocator.allocate(20 * MIB, { frames: SITES.activation }));
    blocks.push(allocator.allocate(20 * MIB, { frames: SITES.parameter }));
  }
  if (pieces) {
    for (let at = 0; at < blocks.length; at += 2) {
      allocator.free(/** @type {import("./simulator.mjs").Block} */ (blocks[at]));
    }
  }
  try {
    allocator.allocate(200 * MIB, { frames: SITES.leak });
  } catch (error) {
    if (!(error instanceof OutOfMemory)) {
      throw error;
    }
  }
  return allocator;
}
