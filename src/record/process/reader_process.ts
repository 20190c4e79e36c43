/** The process that the Python package starts to read its program's profile; its memory is not the program's. */
import { readEnvironment } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";

/** Set in python/tidemark/_program.py. */
const MARK = "TIDEMARK_READER";

/** From its exec on: a process that was only forked has the environment of its parent. */
export function isReader(pid: Pid): boolean {
  return readEnvironment(pid)[MARK] !== undefined;
}
