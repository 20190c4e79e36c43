/** Programs for the simulated allocator, from a seed. */
import { CachingAllocator, OutOfMemory } from "./simulator.mjs";

const MIB = 2 ** 20;

/** xorshift32: the same numbers everywhere. @param {number} seed */
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
        if (!(error instanceof OutOfMemory)) throw error;
        for (const block of live.splice(0, Math.ceil(live.length / 2))) allocator.free(block);
      }
    } else if (choice < 0.96) {
      const [block] = live.splice(Math.floor(random() * live.length), 1);
      if (block && random() < 0.2) allocator.recordStream(block, 0x9900);
      if (block) allocator.free(block, stacks[0]);
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
