/** The thread that counts objects: a heap of gigabytes takes seconds of CPU time, which must not delay the polls. */

import { parentPort, workerData } from "node:worker_threads";
import { countsOf } from "../../cpython/heap/census/type_counts.js";
import { countObjects } from "../../cpython/heap/index.js";
import { lookUpHolders } from "../../holders/holder_lookup.js";
import { openProcessMemory } from "../../linux/index.js";
import { threadCpu } from "../../linux/this_process/clock.js";
import { lowerPriority } from "../../linux/this_process/thread_priority.js";
import type { Pid } from "../../model/base/units.js";
import { processGone, TidemarkError } from "../../model/errors/errors.js";
import type { Metric } from "../../model/profile/series.js";
import { bundledAllocators } from "../../native/index.js";
import type { CensusAnswer, CensusQuestion } from "./census_watch.js";
import { ObjectAddresses } from "./object_addresses.js";

const { pid } = workerData as { readonly pid: Pid };
const remembered = new ObjectAddresses();
const GONE = processGone(pid).id;
/** Files that contain an allocator; null: not searched yet. */
let carriers: readonly string[] | null = null;

lowerPriority();

parentPort?.on("message", (question: CensusQuestion) => {
  const begun = performance.now();
  const cpu = threadCpu();
  let answer: CensusAnswer;
  try {
    answer = question.ask === "census" ? count(question.remember) : lookUp(question.types);
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    answer = { kind: "refused", why: error.id === GONE ? "" : error.what };
  }
  parentPort?.postMessage({
    answer,
    tookMs: performance.now() - begun,
    cpuMs: cpu(),
  });
});

function count(remember: boolean): CensusAnswer {
  const memory = openProcessMemory(pid);
  try {
    const { census } = countObjects(memory);
    if (remember) {
      remembered.take(memory);
    }
    return { kind: "census", ...countsOf(census) };
  } finally {
    memory.close();
  }
}

/**
 * The holders of objects that were created after addresses were remembered, for some types; and of objects
 * behind which a library keeps memory without malloc.
 */
function lookUp(types: readonly { readonly type: string; readonly site: string }[]): CensusAnswer {
  const memory = openProcessMemory(pid);
  try {
    const born = remembered.newOf(
      memory,
      types.map(({ type }) => type),
    );
    const sites = types.flatMap(({ type, site }) => {
      const addresses = born.get(type) ?? [];
      return addresses.length > 0 ? [{ site, python: true, addresses, swelling: null }] : [];
    });
    carriers ??= bundledAllocators(memory).map(({ path }) => path);
    const unsampled = { growing: new Set<Metric>(), opened: [], libraries: carriers, sampled: [] };
    const { batch } =
      sites.length + carriers.length > 0
        ? lookUpHolders({ pid, sites, unsampled })
        : { batch: null };
    return { kind: "holders", batch };
  } finally {
    memory.close();
  }
}
