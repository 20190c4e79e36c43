import type { Millis, TimeMs } from "../base/units.js";
import type { FrameJson, TargetJson } from "./documents.js";

/** `tidemark.stacks/1`: the Python stacks of all threads, of one moment; with --native the native frames, too. */
export interface StacksJson {
  schema: "tidemark.stacks/1";
  target: TargetJson;
  atMs: TimeMs;
  /** How long the program stood still; 0: it was read while it ran. */
  pauseMs: Millis;
  /** Oldest first. */
  threads: {
    /** As the reader's pid namespace has it; 0 where the kernel has no such thread yet, or any more. */
    tid: number;
    /** threading's name, else the kernel's. */
    name: string;
    holdsGil: boolean;
    /** R runs, S sleeps, D waits for a device, T stopped, t traced, Z ended; empty where not known. */
    state: string;
    /** 0: the main interpreter; others in the order in which they are listed; -1: a thread that runs no Python
     * (listed with --native, behind the others). */
    interpreter: number;
    /** Leaf first; `line` 0: the instruction has none. With --native, native frames stand among them: an
     * evaluator's gives way to the Python frames that it ran, and a `mark` says why frames are missing. */
    frames: FrameJson[];
  }[];
  /** asyncio's tasks that are not done. */
  tasks: {
    /** Hex address of the task object. */
    id: string;
    name: string;
    /** The thread that runs it now; absent: it waits. */
    tid?: number;
    /** Of the coroutines that it awaits, leaf first. */
    frames: FrameJson[];
    /** Ids of the tasks that it waits for, directly or through asyncio.gather. */
    waitsFor: string[];
  }[];
  /** What could not be seen, and why. */
  limits: string[];
}
