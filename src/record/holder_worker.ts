/** The thread that looks holders up: a heap's graph takes seconds of a core, which the polls must not lose. */
import { parentPort, workerData } from "node:worker_threads";
import { lookUpHolders } from "./holder_lookup.js";
import type { LookupAnswer, LookupRequest } from "./suspect_watch.js";

const begun = performance.now();
const batch = lookUpHolders(workerData as LookupRequest);
parentPort?.postMessage({
  batch,
  tookMs: performance.now() - begun,
} satisfies LookupAnswer);
