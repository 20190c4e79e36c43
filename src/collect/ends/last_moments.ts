/**
 * Keeps the last moment of programs that were killed for memory or crashed: the recording and its diagnosis, as an artifact.
 *
 *     program ended ──memory? crash?──> cause, or that it is not known ──> artifact with the recording
 *     worker ended  ──crashed with a signal of its own error──> artifact with the recording so far
 */
import type { Millis, Pid } from "../../model/base/units.js";
import { type MemoryEnd, memoryEndSentence } from "../../model/profile/memory_end.js";
import type { WantedCapture } from "../captures/captures.js";
import type { Program } from "../policy/programs.js";
import { crashSentence } from "./crash.js";
import type { ProcessEvents } from "./process_events.js";

interface LastMomentsOptions {
  readonly events: ProcessEvents;
  readonly capture: (wanted: WantedCapture) => void;
}

export class LastMoments {
  readonly #options: LastMomentsOptions;
  /** By key of the program: its processes at the last poll, and when each was first seen. */
  #processes = new Map<string, ReadonlyMap<Pid, Millis>>();

  constructor(options: LastMomentsOptions) {
    this.#options = options;
  }

  /**
   * A program that was recorded has ended. `isOrderly`: whether its exit handlers ran; null: unknown. True if its last
   * moment is kept.
   */
  ended(
    program: Program,
    recording: string,
    memoryEnds: readonly MemoryEnd[],
    isOrderly: boolean | null,
  ): boolean {
    const { pid, key } = program.root;
    const end = memoryEnds.at(-1);
    const since = this.#processes.get(key)?.get(pid) ?? 0;
    const reason =
      end === undefined
        ? crashSentence(pid, this.#options.events.endOf(pid, since), isOrderly)
        : memoryEndSentence(end, pid);
    if (reason !== null) {
      this.#capture(program, recording, reason, false);
    }
    return reason !== null;
  }

  /** Finds workers that crashed since the last poll. `living`: all running programs with their recordings. */
  poll(
    living: readonly { readonly program: Program; readonly recording: string | null }[],
    nowMs: Millis,
  ): void {
    const before = this.#processes;
    this.#processes = new Map();
    for (const { program, recording } of living) {
      const { root, processes } = program;
      const known = before.get(root.key);
      const seen = new Map(processes.map(({ pid }) => [pid, known?.get(pid) ?? nowMs] as const));
      this.#processes.set(root.key, seen);
      for (const [pid, sinceMs] of known ?? []) {
        const exit = seen.has(pid) ? null : this.#options.events.endOf(pid, sinceMs);
        // Workers end with exit codes and by SIGKILL as their masters like.
        const reason = exit?.signal == null ? null : crashSentence(pid, exit, null);
        if (recording !== null && reason?.includes("crashed with") === true) {
          this.#capture(program, recording, `A worker crashed. ${reason}`, true);
        }
      }
    }
  }

  #capture(program: Program, recording: string, reason: string, isGrowing: boolean): void {
    this.#options.capture({
      ...{ program, reason, recording, isGrowing },
      captures: ["diagnose"],
      lastMoment: true,
    });
  }
}
