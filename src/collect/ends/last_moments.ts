/**
 * Keeps the last moment of programs that were killed for memory or crashed: the recording and its diagnosis, as an artifact.
 *
 *     program ended ──memory? crash?──> artifact with the recording | nothing
 *     worker ended  ──crashed with a signal of its own error──> artifact with the recording so far
 *
 * The kernel's event of an end may arrive after the end was noticed. An end without one is looked up again at the next
 * polls, for {@link EVENT_MS}.
 */
import type { Millis, Pid } from "../../model/base/units.js";
import { type MemoryEnd, memoryEndSentence } from "../../model/profile/memory_end.js";
import type { WantedCapture } from "../captures/captures.js";
import type { Program } from "../policy/programs.js";
import { crashSentence } from "./crash.js";
import { EVENT_MS, type ProcessEvents, type ProcessExit } from "./process_events.js";

interface LastMomentsOptions {
  readonly events: Pick<ProcessEvents, "endOf" | "isReady">;
  readonly clock: () => Millis;
  readonly capture: (wanted: WantedCapture) => void;
}

/** An end whose event has not arrived. */
interface Unexplained {
  readonly pid: Pid;
  readonly sinceMs: Millis;
  readonly untilMs: Millis;
  /** Called once; null: it is not known how the process ended. */
  readonly explained: (exit: ProcessExit | null) => void;
}

export class LastMoments {
  readonly #options: LastMomentsOptions;
  /** By key of the program: its processes at the last poll, and when each was first seen. */
  #processes = new Map<string, ReadonlyMap<Pid, Millis>>();
  /** The same processes in the same order need no comparison. */
  readonly #seen = new WeakMap<Program["processes"], ReadonlyMap<Pid, Millis>>();
  #unexplained: Unexplained[] = [];

  constructor(options: LastMomentsOptions) {
    this.#options = options;
  }

  /** A program that was recorded has ended. `otherwise`: called, perhaps later, if its last moment is not kept. */
  ended(
    program: Program,
    recording: string,
    memoryEnds: readonly MemoryEnd[],
    otherwise: () => void,
  ): void {
    const { pid, key } = program.root;
    const end = memoryEnds.at(-1);
    if (end !== undefined) {
      this.#capture(program, recording, memoryEndSentence(end, pid), false);
      return;
    }
    this.#explain(pid, this.#processes.get(key)?.get(pid) ?? 0, (exit) => {
      const reason = crashSentence(pid, exit);
      if (reason === null) {
        otherwise();
      } else {
        this.#capture(program, recording, reason, false);
      }
    });
  }

  /**
   * Finds workers that crashed since the last poll. `living`: all running programs with their recordings; null: no process has
   * started or ended.
   */
  poll(
    living: readonly { readonly program: Program; readonly recording: string | null }[] | null,
    nowMs: Millis,
  ): void {
    this.#lookAgain(nowMs);
    if (living === null) {
      return;
    }
    const before = this.#processes;
    this.#processes = new Map();
    for (const { program, recording } of living) {
      const { root, processes } = program;
      const known = before.get(root.key);
      if (known !== undefined && known === this.#seen.get(processes)) {
        this.#processes.set(root.key, known);
        continue;
      }
      const seen = new Map(processes.map(({ pid }) => [pid, known?.get(pid) ?? nowMs] as const));
      this.#seen.set(processes, seen);
      this.#processes.set(root.key, seen);
      for (const [pid, sinceMs] of known ?? []) {
        if (recording !== null && !seen.has(pid)) {
          this.#explain(pid, sinceMs, (exit) => this.#workerEnded(program, recording, pid, exit));
        }
      }
    }
  }

  /** Decides about all ends with what is known. */
  close(): void {
    this.#lookAgain(Number.POSITIVE_INFINITY);
  }

  #explain(pid: Pid, sinceMs: Millis, explained: Unexplained["explained"]): void {
    const { events, clock } = this.#options;
    const exit = events.endOf(pid, sinceMs);
    if (exit !== null || !events.isReady) {
      explained(exit);
    } else {
      this.#unexplained.push({ pid, sinceMs, untilMs: clock() + EVENT_MS, explained });
    }
  }

  #lookAgain(nowMs: Millis): void {
    if (this.#unexplained.length === 0) {
      return;
    }
    const { events } = this.#options;
    const before = this.#unexplained;
    this.#unexplained = [];
    for (const one of before) {
      const exit = events.endOf(one.pid, one.sinceMs);
      if (exit !== null || nowMs >= one.untilMs) {
        one.explained(exit);
      } else {
        this.#unexplained.push(one);
      }
    }
  }

  #workerEnded(program: Program, recording: string, pid: Pid, exit: ProcessExit | null): void {
    // Workers end with exit codes and by SIGKILL as their masters like.
    const reason = exit?.signal == null ? null : crashSentence(pid, exit);
    if (reason?.includes("crashed with") === true) {
      this.#capture(program, recording, `A worker crashed. ${reason}`, true);
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
