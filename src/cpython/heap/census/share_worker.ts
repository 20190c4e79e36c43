/** A thread that counts its share of a program's objects (census_threads.ts). */
import { parentPort, workerData } from "node:worker_threads";
import { openProcessMemory } from "../../../linux/index.js";
import type { Pid } from "../../../model/base/units.js";
import { countShare } from "./census.js";
import { type ShareRequest, untaken } from "./census_threads.js";

const memory = openProcessMemory(workerData as Pid);

parentPort?.on("message", (request: ShareRequest) => {
  memory.refresh();
  parentPort?.postMessage(countShare(memory, request.layout, untaken(request)));
});
