/**
 * A census by several threads: each thread takes the next part of the heap until none is left, and the results
 * are joined.
 *
 *   helpers started ── interpreter found ── heap split ──┬── this thread: parts 0, 3, 4 ...──┬── join
 *    (helpers load their code)                           └── helper:      parts 1, 2, 5 ...──┘
 *
 * If a helper fails, its parts are lost. This thread then counts everything again alone, and reports errors as
 * if there had been no helpers.
 */

import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { readStatus } from "../../../linux/index.js";
import type { Memory } from "../../../linux/memory/memory.js";
import { itemAt } from "../../../model/base/columns.js";
import type { Bytes, Pid } from "../../../model/base/units.js";
import { type HeapPart, splitHeap } from "../memory/heap_parts.js";
import type { HeapLayout } from "../memory/layout.js";
import { type Census, type CensusShare, countShare, joinShares, takeCensus } from "./census.js";

/** A smaller program is counted before helpers are ready. */
const LEAST_BYTES: Bytes = 256 * 2 ** 20;
/** With more threads, memory bandwidth is the limit. */
const MOST_THREADS = 4;

/** Thread id of a worker that has ended. */
const ENDED = -1;

/** The request to a helper; `taken` counts the parts that threads have taken. */
export interface ShareRequest {
  readonly layout: HeapLayout;
  readonly parts: readonly HeapPart[];
  readonly taken: SharedArrayBuffer;
}

/** Calls a function with helpers, and ends them. */
export async function withHelpers<Result>(
  memory: Memory,
  work: (helpers: readonly Worker[]) => Promise<Result>,
): Promise<Result> {
  const helpers = memory.pid === null ? [] : startHelpers(memory.pid);
  try {
    return await work(helpers);
  } finally {
    await Promise.all(helpers.map((helper) => helper.terminate()));
  }
}

/** Number of helpers that are useful for the program's size on this machine. */
export function startHelpers(pid: Pid): Worker[] {
  const large = (readStatus(pid)?.rssBytes ?? 0) >= LEAST_BYTES;
  const helpers = large ? Math.min(availableParallelism(), MOST_THREADS) - 1 : 0;
  return Array.from({ length: helpers }, () => {
    const helper = new Worker(new URL("./share_worker.js", import.meta.url), { workerData: pid });
    helper.on("error", () => undefined); // nobody may be waiting for it yet
    return helper;
  });
}

/** Counts every object of a program. Exact if it is paused. */
export async function takeCensusWith(
  helpers: readonly Worker[],
  memory: Memory,
  layout: HeapLayout,
): Promise<Census> {
  if (helpers.length === 0) {
    return takeCensus(memory, layout);
  }
  const parts = splitHeap(memory, layout);
  const taken = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const request: ShareRequest = { layout, parts, taken };
  const theirs = helpers.map((helper) => shareOf(helper, request));
  const own = countShare(memory, layout, untaken(request));
  const shares = [own, ...(await Promise.all(theirs))].filter((share) => share !== null);
  return shares.length > helpers.length ? joinShares(shares) : takeCensus(memory, layout);
}

/** Takes parts that no thread has taken, until there are none. */
export function* untaken({ parts, taken }: ShareRequest): Generator<HeapPart> {
  const count = new Int32Array(taken);
  for (let n = Atomics.add(count, 0, 1); n < parts.length; n = Atomics.add(count, 0, 1)) {
    yield itemAt(parts, n);
  }
}

/** null if it failed. */
function shareOf(helper: Worker, request: ShareRequest): Promise<CensusShare | null> {
  return new Promise((resolve) => {
    if (helper.threadId === ENDED) {
      resolve(null);
      return;
    }
    helper.once("message", resolve);
    helper.once("error", () => resolve(null));
    helper.once("exit", () => resolve(null));
    helper.postMessage(request);
  });
}
