/**
 * The thread that looks up holders: building a heap's graph takes seconds of CPU time, which must not delay the
 * polls.
 */

import { parentPort, workerData } from "node:worker_threads";
import { countsOf } from "../cpython/heap/census/type_counts.js";
import { countObjects } from "../cpython/heap/index.js";
import { locatePython } from "../cpython/index.js";
import { openProcessMemory } from "../linux/index.js";
import { threadCpu } from "../linux/this_process/clock.js";
import { optimizeForLookup, optimizeForRecorder } from "../linux/this_process/optimization.js";
import { lowerPriority } from "../linux/this_process/thread_priority.js";
import type { Pid } from "../model/base/units.js";
import { TidemarkError } from "../model/errors/errors.js";
import { censusBatch } from "../recording/census_batch.js";
import type { CensusBatch } from "../recording/types.js";
import { lookUpHolders } from "./holder_lookup.js";
import type { LookupAnswer, LookupRequest } from "./lookup_request.js";
import { stillRunning } from "./still_running.js";

lowerPriority();
optimizeForLookup();
const cpu = threadCpu();
const request = workerData as LookupRequest;
const { batch, census, objects, refusal } = lookUpHolders(request);
parentPort?.postMessage({
  batch,
  census: census ?? countAlone(request.pid),
  cpuMs: cpu(),
  objects,
  refusal,
} satisfies LookupAnswer);
optimizeForRecorder();

/** A heap too large for a graph is still counted; null if the program cannot be read at all. */
function countAlone(pid: Pid): CensusBatch | null {
  try {
    const memory = openProcessMemory(pid);
    try {
      const runs = stillRunning(locatePython(memory));
      const { census } = countObjects(memory);
      return runs() ? censusBatch(pid, countsOf(census)) : null;
    } finally {
      memory.close();
    }
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
}
