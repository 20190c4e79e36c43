import type { Millis, TimeMs } from "../base/units.js";
import type { FrameJson, TargetJson } from "./documents.js";

/** `tidemark.stacks/1`: the Python stacks of all threads, at one moment; with --native also native frames. */
export interface StacksJson {
  schema: "tidemark.stacks/1";
  target: TargetJson;
  atMs: TimeMs;
  /** Pause of the program; 0: it was read while it ran. */
  pauseMs: Millis;
  /** Oldest first. */
  threads: {
    /** Id in the reader's pid namespace; 0 if the kernel has no such thread yet or any more. */
    tid: number;
    /** The name from threading, otherwise the kernel's. */
    name: string;
    holdsGil: boolean;
    /** R runs, S sleeps, D waits for a device, T stopped, t traced, Z ended; empty if unknown. */
    state: string;
    /** 0: the main interpreter; others in the order in which they are listed; -1: a thread that runs no Python
     * (listed with --native, after the others). */
    interpreter: number;
    /**
     * Leaf first; `line` 0: the instruction has none. With --native, native frames are included: a frame of the
     * bytecode evaluator is replaced by the Python frames that it ran, and a `mark` gives the reason for
     * missing frames.
     */
    frames: FrameJson[];
  }[];
  /** asyncio's tasks that are not done. */
  tasks: {
    /** Hex address of the task object. */
    id: string;
    name: string;
    /** The thread that runs it now; absent if it is waiting. */
    tid?: number;
    /** Frames of the coroutines that it awaits, leaf first. */
    frames: FrameJson[];
    /** Ids of the tasks that it waits for, directly or through asyncio.gather. */
    waitsFor: string[];
  }[];
  /** What could not be observed, and why. */
  limits: string[];
}
