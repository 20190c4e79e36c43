/** A census by several threads equals that of one thread. */

import { once } from "node:events";
import { availableParallelism } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// The code that a thread runs must be built.
import { startHelpers, takeCensusWith } from "../../dist/cpython/heap/census/census_threads.js";
import { countObjectsExactly } from "../../dist/cpython/heap/index.js";
import { type CensusShare, joinShares, takeCensus } from "../../src/cpython/heap/census/census.js";
import { splitHeap, wholeRegions } from "../../src/cpython/heap/memory/heap_parts.js";
import { type HeapLayout, heapLayout } from "../../src/cpython/heap/memory/layout.js";
import { type Memory, openProcessMemory } from "../../src/linux/index.js";
import { mappedChunkBytes } from "../../src/linux/memory/mapped_chunk.js";
import { present } from "../../src/model/base/present.js";
import { anyInterpreter } from "../environment.js";
import { start, type Waiting } from "../python_program.js";

/** Small objects on both sides of blocks that contain a look-alike: a copy of a pool where one could be. */
const LARGE = `
import ctypes, sys
class Entry:
    def __init__(self, n): self.n, self.text, self.more = n, f"entry {n}", {n}
POOL = 2 ** 14
def copies_of_pool(address):
    block = bytearray(48 * 2 ** 20)
    start = ctypes.addressof(ctypes.c_char.from_buffer(block))
    pool = address // POOL * POOL
    for at in range(-start % POOL + start, start + len(block) - POOL, POOL):
        ctypes.memmove(at, pool, POOL)
    return block
kept = []
for n in range(420_000):
    kept.append(Entry(n + 1000))
    if n % 140_000 == 100_000:
        del kept[-2000::2] # leaves pools with free blocks
        kept.append(copies_of_pool(id(kept[-501])))
print("{}", flush=True)
sys.stdin.read()`;
const NO_ROOM = { maxPauseMs: 60_000, maxBytes: 1 };
const ENTRIES = 420_000 - 3 * 1000;

describe("a program of a few hundred MiB", () => {
  let waiting: Waiting;
  let memory: Memory;
  let layout: HeapLayout;

  beforeAll(async () => {
    const interpreter = anyInterpreter();
    waiting = await start([interpreter.path, "-c", LARGE]);
    memory = openProcessMemory(waiting.pid);
    layout = present(heapLayout(Number(interpreter.version.split(".")[1])));
  });
  afterAll(async () => {
    memory.close();
    await waiting.stop();
  });

  test("its parts cover each region once, and none begins within a large block", () => {
    const parts = splitHeap(memory, layout);
    expect(parts.length).toBeGreaterThan(wholeRegions(memory).length);
    const head = new Uint32Array(4);
    for (const whole of wholeRegions(memory)) {
      const own = parts.filter(({ region }) => region.start === whole.start);
      expect(own[0]?.start).toBe(whole.start);
      expect(own.at(-1)?.end).toBe(whole.end);
      expect(own.slice(1).map(({ start }) => start)).toEqual(
        own.slice(0, -1).map(({ end }) => end),
      );
      for (let at = whole.start; at < whole.end; at += 4096) {
        memory.readInto(at, new Uint8Array(head.buffer));
        const end = at + mappedChunkBytes(head, 0);
        if (end > at + 2 ** 20 && end <= whole.end) {
          expect(own.filter(({ start }) => start > at && start < end)).toEqual([]);
          at = end - 4096;
        }
      }
    }
  });

  test.skipIf(availableParallelism() < 2)("helpers count what one thread counts", async () => {
    const alone = takeCensus(memory, layout);
    expect(alone.objects[alone.typeNames.indexOf("__main__.Entry")]).toBe(ENTRIES);
    const helpers = startHelpers(waiting.pid);
    expect(helpers.length).toBeGreaterThan(0);
    for (let again = 0; again < 2; again++) {
      expect(await takeCensusWith(helpers, memory, layout)).toEqual({
        ...alone,
        figures: { ...alone.figures, readBytes: expect.any(Number) },
      });
    }
    await Promise.all(helpers.map((helper) => helper.terminate()));
  });

  test("they also count a heap that does not fit in a copy", async () => {
    const { census, pauseMs } = await countObjectsExactly(memory, NO_ROOM);
    expect(pauseMs).toBeGreaterThan(0);
    expect(census.objects).toEqual(takeCensus(memory, layout).objects);
  });

  test.skipIf(availableParallelism() < 2)("a helper's share equals a direct count", async () => {
    const [helper, ...others] = startHelpers(waiting.pid);
    helper?.postMessage({
      layout,
      parts: splitHeap(memory, layout),
      taken: new SharedArrayBuffer(4),
    });
    const [share] = (await once(helper as NodeJS.EventEmitter, "message")) as [CensusShare];
    const { figures, ...counts } = takeCensus(memory, layout);
    expect(joinShares([share])).toMatchObject(counts);
    expect(share.figures.usedBlocks).toBe(figures.usedBlocks);
    await Promise.all([helper, ...others].map((one) => one?.terminate()));
  });

  test.skipIf(availableParallelism() < 2)("a helper that ends costs only time", async () => {
    const helpers = startHelpers(waiting.pid);
    const counting = takeCensusWith(helpers, memory, layout);
    await helpers[0]?.terminate();
    expect((await counting).objects).toEqual(takeCensus(memory, layout).objects);
    const without = await takeCensusWith(helpers, memory, layout); // its end has been noticed
    expect(without.objects).toEqual(takeCensus(memory, layout).objects);
    await Promise.all(helpers.map((helper) => helper.terminate()));
  });
});

test("a small program, and one that has ended, have no helpers", async () => {
  const small = await start([anyInterpreter().path, "-c", 'print("{}", flush=True); input()']);
  expect(startHelpers(small.pid)).toEqual([]);
  await small.stop();
  expect(startHelpers(2 ** 30)).toEqual([]);
});

describe("shares joined", () => {
  const share = (of: Partial<CensusShare>): CensusShare => ({
    typeNames: ["dict", "Tensor"],
    modules: ["builtins", "torch"],
    objects: Float64Array.of(2, 1),
    bytes: Float64Array.of(128, 80),
    bufferBytes: Float64Array.of(0, 0),
    tracked: Float64Array.of(2, 1),
    figures: { readBytes: 4096, pools: 1, usedBlocks: 3, tornPools: 0, debugHooks: false },
    storages: [],
    arrayData: new Float64Array(),
    ...of,
  });

  test("a type has one row, the largest type first", () => {
    const joined = joinShares([share({}), share({ typeNames: ["Tensor", "Tensor"] })]);
    expect(joined.typeNames).toEqual(["Tensor", "dict"]);
    expect([...joined.objects]).toEqual([4, 2]);
    expect([...joined.bytes]).toEqual([288, 128]);
    expect(joined.figures).toMatchObject({ readBytes: 8192, pools: 2, usedBlocks: 6 });
  });

  test("a storage that tensors in two parts use, or that an array shares, is counted once", () => {
    const storages = [{ row: 1, data: 0x7f0000, bytes: 1000 }];
    const joined = joinShares([share({ storages }), share({ storages })]);
    expect(joined.typeNames).toEqual(["Tensor", "dict"]);
    expect([...joined.bufferBytes]).toEqual([1000, 0]);
    const lent = joinShares([share({ storages }), share({ arrayData: Float64Array.of(0x7f0000) })]);
    expect([...lent.bufferBytes]).toEqual([0, 0]);
  });
});
