/** What processes cost, as the kernel accounts for it in /proc: CPU time and RSS. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** USER_HZ of Linux on x86-64: the unit of the times in /proc/PID/stat. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/**
 * @typedef {object} ProcessCost
 * @property {number} parent
 * @property {number} ownMs CPU time of the process and all of its threads, including those that have ended
 * @property {number} childrenMs CPU time of its children that it has waited for
 * @property {number} rssBytes
 */

/** @param {number} pid @returns {ProcessCost | null} null: there is no such process */
export function costOf(pid) {
  let text;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null;
  }
  // proc_pid_stat(5): the fields from the third on, after the name, which may contain any characters.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (/** @type {number} */ number) => Number(fields[number - 3]);
  return {
    parent: field(4),
    ownMs: (field(14) + field(15)) * TICK_MS,
    childrenMs: (field(16) + field(17)) * TICK_MS,
    rssBytes: field(24) * PAGE_BYTES,
  };
}

/** @param {number} pid @returns {number[]} */
export function childrenOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "latin1")
        .split(" ")
        .filter((word) => word !== "")
        .map(Number),
    );
  } catch {
    return [];
  }
}

/** @param {number} pid */
export function isNode(pid) {
  try {
    return readlinkSync(`/proc/${pid}/exe`) === readlinkSync("/proc/self/exe");
  } catch {
    return false;
  }
}

/**
 * The cost of Tidemark's own processes: the command and what it started, without the recorded program. Under `run` the
 * command is the guard, and the program is its child, so children that the guard has waited for do not count.
 * @param {number} command
 * @param {number} program the recorded program
 * @returns {{cpuMs: number, rssBytes: number, recorder: number | null} | null} null: the command has ended.
 *   `recorder`: the pid of Node
 */
export function recorderCost(command, program) {
  const first = costOf(command);
  if (first === null) {
    return null;
  }
  const guarded = !isNode(command);
  let cpuMs = first.ownMs + (guarded ? 0 : first.childrenMs);
  let { rssBytes } = first;
  let recorder = guarded ? null : command;
  const left = childrenOf(command);
  for (let pid = left.pop(); pid !== undefined; pid = left.pop()) {
    const cost = pid === program ? null : costOf(pid);
    if (cost !== null) {
      cpuMs += cost.ownMs + cost.childrenMs;
      rssBytes += cost.rssBytes;
      recorder ??= isNode(pid) ? pid : null;
      left.push(...childrenOf(pid));
    }
  }
  return { cpuMs, rssBytes, recorder };
}
