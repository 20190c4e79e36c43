/** The process that the Python package starts to read its program's profile; its memory is not the program's. */
import { type ProcessStat, readEnvironment, startTimeMs } from "../../linux/index.js";
import type { Millis, Pid, TimeMs } from "../../model/base/units.js";

/** Set in python/tidemark/_program.py. */
const MARK = "TIDEMARK_READER";
const FORK_TO_EXEC_MS: Millis = 100;

export function isReader(pid: Pid): boolean {
  return readEnvironment(pid)[MARK] !== undefined;
}

/**
 * Whether the process was forked so recently that it may still call exec. Until then its environment is its parent's, and
 * its memory counts twice; a process that only forks is seen at the next poll.
 */
export function isAboutToExec(
  { stackStart, startTicks }: ProcessStat,
  parent: ProcessStat | null | undefined,
  nowMs: TimeMs,
): boolean {
  return parent?.stackStart === stackStart && nowMs - startTimeMs(startTicks) < FORK_TO_EXEC_MS;
}
