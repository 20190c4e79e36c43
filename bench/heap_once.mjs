/**
 * Reads a program's heap once, in a separate process so that its memory can be measured: prints a line of JSON.
 *
 *     node bench/heap_once.mjs PID census|exact|graph|read
 *
 * `read` analyzes nothing: it measures how long the kernel takes to copy the same bytes from /proc/PID/mem, on one
 * thread, a MiB at a time, into memory that was touched before.
 */

import {
  countObjects,
  countObjectsExactly,
  countObjectsTogether,
  takeGraph,
} from "../dist/cpython/heap/index.js";
import { heapRegions } from "../dist/cpython/heap/memory/heap_regions.js";
import { openProcessMemory } from "../dist/linux/index.js";

const [, , pid, kind] = process.argv;
const memory = openProcessMemory(Number(pid));
const LONG = { maxPauseMs: 120_000 };
const started = performance.now();
/** @type {Record<string, unknown>} */
let found = {};
if (kind === "read") {
  const into = new Uint8Array(2 ** 20).fill(1);
  let readBytes = 0;
  for (const region of heapRegions(memory)) {
    for (const { start, end } of memory.resident(region.start, region.end)) {
      for (let at = start; at < end; at += into.length) {
        readBytes += memory.readInto(at, into.subarray(0, Math.min(into.length, end - at)));
      }
    }
  }
  found = { ms: performance.now() - started, objects: 0, readBytes };
} else if (kind === "graph") {
  const { census } = countObjects(memory);
  const objects = census.objects.reduce((sum, count) => sum + count, 0);
  const from = performance.now();
  try {
    const options = {
      ...LONG,
      onPlan: (/** @type {number} */ _objects, /** @type {number} */ bytes) => {
        found.statedBytes = bytes;
      },
    };
    const { objects: graph, pauseMs } = await takeGraph(memory, options, objects);
    found = { ...found, objects, pauseMs, edges: graph.graph.edgeTo.length };
  } catch (error) {
    found = { objects, refused: /** @type {Error} */ (error).message };
  }
  found.ms = performance.now() - from;
} else {
  const { census, pauseMs } =
    kind === "exact" ? await countObjectsExactly(memory, LONG) : await countObjectsTogether(memory);
  found = {
    ms: performance.now() - started,
    objects: census.objects.reduce((sum, count) => sum + count, 0),
    readBytes: census.figures.readBytes,
    pauseMs,
  };
}
memory.close();
console.log(JSON.stringify({ ...found, ownBytes: process.resourceUsage().maxRSS * 1024 }));
