import type { Pid } from "../../model/base/units.js";
import { hasEnded, readStat } from "../index.js";

/** True while this process runs; a process with a reused pid has other start ticks. */
export function processLives(pid: Pid, startTicks: number): boolean {
  const stat = pid > 0 ? readStat(pid) : null;
  return !hasEnded(stat) && stat?.startTicks === startTicks;
}
