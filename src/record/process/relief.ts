/**
 * Makes a running program release memory: by code that its own main thread runs.
 *
 *     gc.collect()            cycles that nothing reaches any more
 *     malloc_trim(0)          pages that glibc keeps free
 *     torch's empty_cache()   blocks that torch keeps free on a device, after the next step of an optimizer
 *     tidemark.on_pressure    what the program itself named
 *
 * All throw TidemarkError if the process cannot be entered (TM-E034, TM-E035, not permitted, ended), or the code raised
 * (TM-E036).
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { formatBytes } from "../../model/base/numbers.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { enterProcess } from "./enter_process.js";

/** What was done, in words; or why nothing could be. */
export type Relief = { readonly outcome: string } | { readonly refused: string };

const COLLECT = `import gc
return gc.collect()`;
const TRIM = `import ctypes
trim = ctypes.CDLL(None).malloc_trim
trim.argtypes = [ctypes.c_size_t]
return trim(0)`;

/** @returns how many objects the garbage collector found unreachable. */
export async function collectGarbage(pid: Pid, options: RemoteExecOptions): Promise<number> {
  const { text } = await enterProcess(pid, COLLECT, options);
  return Number(text) || 0;
}

export async function trimAllocator(pid: Pid, options: RemoteExecOptions): Promise<void> {
  await enterProcess(pid, TRIM, options);
}

/**
 * Within a step, torch would have to ask the device for the same blocks again, so the cache is emptied right after a
 * step; a program that makes no step in time has its cache emptied at once. torch < 2.1 has no such hook.
 */
const BEGIN_EMPTYING = `import sys
torch = sys.modules.get("torch")
if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
    return "unused"
import torch.optim.optimizer as optimizer
register = getattr(optimizer, "register_optimizer_step_post_hook", None)
state = {"freed": None, "handle": None}
def empty(*_):
    if state["freed"] is None:
        before = torch.cuda.memory_reserved()
        torch.cuda.empty_cache()
        state["freed"] = before - torch.cuda.memory_reserved()
    if state["handle"] is not None:
        state["handle"].remove()
        state["handle"] = None
state["empty"] = empty
sys.modules["_tidemark_emptying"] = state
if register is None:
    empty()
else:
    state["handle"] = register(empty)
return "begun"`;
const SEE_EMPTYING = (next: "look" | "empty" | "forget") => `import sys
state = sys.modules["_tidemark_emptying"]
if "${next}" == "empty":
    state["empty"]()
if "${next}" == "forget" and state["handle"] is not None:
    state["handle"].remove()
    del sys.modules["_tidemark_emptying"]
    return "waiting"
if state["freed"] is None:
    return "waiting"
del sys.modules["_tidemark_emptying"]
return state["freed"]`;
const STEP_MS: Millis = 30_000;
const AT_ONCE: RemoteExecOptions = { waitMs: 5_000 };
/** Errors of a program's functions that are named. */
const MOST_ERRORS = 5;
const LOOK_MS: Millis = 500;

/** A tensor in use is not touched. */
export async function emptyDeviceCache(pid: Pid, options: RemoteExecOptions): Promise<Relief> {
  const begun = await enterProcess(pid, BEGIN_EMPTYING, options);
  if (begun.text === "unused") {
    return { refused: "torch has not used a device in this program" };
  }
  const untilMs = monotonicMs() + STEP_MS;
  for (;;) {
    await sleep(LOOK_MS);
    const isAborted = options.signal?.aborted === true;
    const isLate = monotonicMs() >= untilMs;
    const next = isAborted ? "forget" : isLate ? "empty" : "look";
    // Also if the wait is over: nothing of this stays in the program.
    const { text } = await enterProcess(pid, SEE_EMPTYING(next), isAborted ? AT_ONCE : options);
    if (text !== "waiting") {
      const when = isLate ? "no step ended in time" : "after a step";
      const freed = formatBytes(Number(text) || 0);
      return { outcome: `emptied torch's cache of device memory (${when}): ${freed}` };
    }
    if (isAborted || isLate) {
      return { refused: "torch's cache was not emptied in time" };
    }
  }
}

const PRESSURE = (call: string) => `import sys
pressure = sys.modules.get("tidemark._pressure")
if pressure is None:
    return ""
${call}
return pressure._state()`;
const HOOKS_MS: Millis = 30_000;

interface HookState {
  readonly registered: number;
  readonly called?: number;
  readonly errors?: readonly string[];
}

/** Calls what the program registered with tidemark.on_pressure, and waits until all of it has returned. */
export async function runPressureHooks(pid: Pid, options: RemoteExecOptions): Promise<Relief> {
  const untilMs = monotonicMs() + HOOKS_MS;
  let call = "pressure._hooks and pressure._begin()";
  for (;;) {
    const { text } = await enterProcess(pid, PRESSURE(call), options);
    const { registered, called, errors = [] } = hookStateIn(text);
    if (registered === 0) {
      return { refused: "the program has registered nothing with tidemark.on_pressure" };
    }
    const functions = registered === 1 ? "1 function" : `${registered} functions`;
    if (called !== undefined) {
      const raised = errors.length === 0 ? "" : `; raised: ${errors.join("; ")}`;
      return { outcome: `called ${functions} of tidemark.on_pressure${raised}` };
    }
    if (monotonicMs() >= untilMs || options.signal?.aborted === true) {
      return { outcome: `called ${functions} of tidemark.on_pressure; not all have returned yet` };
    }
    call = "";
    await sleep(LOOK_MS);
  }
}

/** The answer comes from the program, so it may be anything. */
function hookStateIn(text: string): HookState {
  try {
    const { registered, called, errors } = JSON.parse(text) as Record<string, unknown>;
    return {
      registered: typeof registered === "number" ? registered : 0,
      ...(typeof called === "number" ? { called } : {}),
      errors: Array.isArray(errors)
        ? errors.slice(0, MOST_ERRORS).map((error) => String(error).slice(0, 200))
        : [],
    };
  } catch {
    return { registered: 0 };
  }
}
