/** Starts the thread that looks up holders; {@link LookupRequest} in, {@link LookupAnswer} out. */
import { Worker } from "node:worker_threads";
import type { LookupRequest } from "./lookup_request.js";

/** The thread posts one {@link LookupAnswer} and ends; it fails with an "error" event. */
export function startLookup(request: LookupRequest): Worker {
  const worker = new Worker(new URL("./holder_worker.js", import.meta.url), {
    workerData: request,
  });
  worker.unref();
  return worker;
}
