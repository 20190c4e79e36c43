/**
 * Arms the agent in processes that a program forked or started before it was attached to: prefork servers (gunicorn,
 * uvicorn, celery), DataLoader workers. All of them write to the same pool, and disarm themselves when its
 * lease ends. A child that cannot be entered is not changed, and becomes a limit of the recording.
 */
import { readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  descendantsOf,
  mappedMemfd,
  readArmPermission,
  readCommand,
  readInterpreter,
} from "../../linux/index.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { type ArmOptions, armAgent } from "./attached_agent.js";
import { POOL } from "./left_agent.js";

/** Which existing children to record: those that run the same executable, every Python process, or none. */
export type ChildrenChoice = "same-program" | "all" | "none";

/** How long to wait for a child to run Python code; an idle one may be waiting for a request. */
const LONGEST_WAIT: Millis = 20_000;
/** How long to wait for children to disarm themselves, and between two looks. */
const LEAVE_MS: Millis = 3_000;
const CHECK_MS: Millis = 100;
/** Number of children entered at the same time. */
const AT_A_TIME = 4;

/** Python descendants of `root` that match the choice, parents before children. */
export function childrenToAttach(root: Pid, choice: ChildrenChoice): Pid[] {
  if (choice === "none") {
    return [];
  }
  const program = executableOf(root);
  return descendantsOf(root).filter(
    (pid) =>
      pid !== root &&
      readInterpreter(pid) !== null &&
      (choice === "all" || executableOf(pid) === program),
  );
}

/**
 * Resolves when each of them is armed or given up, with the longest pause of one. `refuse` receives a sentence about each
 * one that is not recorded.
 */
export async function armChildren(
  pids: readonly Pid[],
  options: ArmOptions,
  signal: AbortSignal,
  refuse: (sentence: string) => void,
): Promise<Millis> {
  const waiting = [...pids];
  let longestPauseMs = 0;
  const worker = async () => {
    for (let pid = waiting.shift(); pid !== undefined; pid = waiting.shift()) {
      const armed = signal.aborted ? "the recording ended first" : await arm(pid, options, signal);
      if (typeof armed === "string") {
        refuse(`Child process ${pid} (${nameOf(pid)}) has no profile: ${armed}.`);
      } else {
        longestPauseMs = Math.max(longestPauseMs, armed);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
  return longestPauseMs;
}

/** Its longest pause if it is armed; otherwise the reason. */
async function arm(pid: Pid, options: ArmOptions, signal: AbortSignal): Promise<Millis | string> {
  const { ok, reason } = readArmPermission(pid);
  if (!ok) {
    return reason;
  }
  try {
    const { status, stood, entered } = await armAgent(pid, options, {
      waitMs: LONGEST_WAIT,
      signal,
    });
    return stood && status.pool !== options.poolPath
      ? "it belongs to another recording"
      : entered.longestPauseMs;
  } catch (error) {
    if (error instanceof TidemarkError) {
      return error.what;
    }
    throw error;
  }
}

/**
 * Waits until the children have disarmed themselves, which those that run do soon after the lease has ended. The sentence names those
 * that have not, such as one that waits for a request.
 */
export async function childrenLeft(
  root: Pid,
  children: readonly Pid[],
  until: AbortSignal | undefined,
): Promise<string[]> {
  const untilMs = monotonicMs() + LEAVE_MS;
  let armed: readonly Pid[] = [...new Set([...children, ...descendantsOf(root)])];
  for (;;) {
    armed = armed.filter((pid) => mappedMemfd(pid, POOL) !== null);
    if (armed.length === 0 || until?.aborted || monotonicMs() >= untilMs) {
      break;
    }
    await sleep(CHECK_MS);
  }
  return armed.length === 0
    ? []
    : [
        armed.length === 1
          ? `The agent stays in process ${armed[0]} until it next allocates memory.`
          : `The agent stays in processes ${armed.join(", ")} until they next allocate memory.`,
      ];
}

function executableOf(pid: Pid): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return "";
  }
}

function nameOf(pid: Pid): string {
  const [program = "?", ...words] = readCommand(pid) ?? [];
  return [program.split("/").at(-1), ...words].join(" ").slice(0, 60);
}
