/**
 * The recordings of the programs that a collector watches: begins one with the agent or from outside, and ends it.
 *
 *     outside ──its turn──> agent ──turn over, or refused──> outside
 *        │                    │
 *        └── program ended ───┴──> the recording is complete; killed for memory: its last moment is kept
 */
import type { RecentTexts } from "../../linux/index.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import { processGone, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import {
  attachAndRecord,
  CpuBudget,
  DeviceUse,
  type ExitOf,
  OutsideRecording,
  type RecordingStart,
} from "../../record/index.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import { rssOf } from "../captures/triggers.js";
import type { ProcessExit } from "../ends/process_events.js";
import type { KeptRecordings } from "../kept/kept_recordings.js";
import type { Chosen, Program } from "../policy/programs.js";
import { OutsidePolls } from "./outside_polls.js";
import type { WatchEvent } from "./watch_event.js";

/** How long a program may take to run Python code. */
const WAIT_MS: Millis = 60_000;
/** A program that takes longer only waits, and costs nothing more. */
const ENTERING_MS: Millis = 5_000;
/** Programs that are attached to at the same time. */
const MOST_ENTERED = 2;
const FIRST_RETRY_MS: Millis = 60_000;
const LAST_RETRY_MS: Millis = 3_600_000;

/** A recording in progress. */
export interface Growing {
  readonly kind: "outside" | "agent";
  readonly path: string;
  /** When the agent was loaded, or the recording from outside began. */
  readonly sinceMs: Millis;
  /** Sum of RSS then. */
  readonly rssBytes: Bytes;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export interface Watched {
  program: Program;
  rule: Chosen;
  growing: Growing | null;
  leftMs: Millis | null;
  turns: number;
  retryMs: Millis;
  retryDistanceMs: Millis;
  /** It got the agent before the warm-up was over, because others of its name ended sooner. */
  isEarly: boolean;
  /** No recording could be made; the next attempt is not before this time. */
  brokenUntilMs: Millis;
}

export function newlyWatched(program: Program, rule: Chosen): Watched {
  return {
    program,
    rule,
    growing: null,
    leftMs: null,
    turns: 0,
    retryMs: 0,
    retryDistanceMs: FIRST_RETRY_MS,
    isEarly: false,
    brokenUntilMs: 0,
  };
}

export interface ProgramEnd {
  readonly memoryEnds: readonly MemoryEnd[];
}

interface RecordersOptions {
  readonly kept: KeptRecordings;
  readonly to: Destination | null;
  /** Interval of readings from outside; the policy may change it. */
  readonly pollMs: () => Millis;
  /** Of the files that programs share. */
  readonly texts: RecentTexts;
  /** How a process ended that lived at that time; null: unknown. */
  readonly outcomeOf: (pid: Pid, sinceMs: Millis) => Promise<ProcessExit | null>;
  /** When a process was last seen to start below this one. */
  readonly startedBelowMs: (pid: Pid) => Millis;
  readonly exitOf: ExitOf;
  /** The last moment at which a scan saw a process that has ended: more often than it is polled from outside. */
  readonly lastSeenOf: ExitOf;
  readonly onEvent: (event: WatchEvent) => void;
  /** A program has ended while it was recorded; its recording is complete. */
  readonly onEnded: (one: Watched, growing: Growing, end: ProgramEnd) => void;
  /** A program is no longer recorded, or another one may be attached to. */
  readonly onFree: () => void;
}

export class Recorders {
  readonly #options: RecordersOptions;
  readonly #budget = new CpuBudget();
  readonly #outside: OutsidePolls;
  readonly #deviceUse = new DeviceUse();
  #entering = 0;

  constructor(options: RecordersOptions) {
    this.#options = options;
    this.#outside = new OutsidePolls(options.pollMs);
  }

  /** The kernel has reported the end of a process, or a scan has noticed it. */
  processEnded(pid: Pid): void {
    this.#outside.ended(pid);
  }

  get mayEnter(): boolean {
    return this.#entering < MOST_ENTERED;
  }

  /** Loads the agent; the recording from outside ends. */
  enter(one: Watched): void {
    this.#entering += 1;
    let isEntering = true;
    const entered = () => {
      this.#entering -= isEntering ? 1 : 0;
      isEntering = false;
      clearTimeout(late);
      this.#options.onFree();
    };
    // Programs that do not answer must not keep others waiting.
    const late = setTimeout(entered, ENTERING_MS);
    const before = one.growing;
    before?.stop.abort();
    this.#begin(one, "agent", async (recordingPath, until) => {
      try {
        await before?.ended;
        const ends = await this.#attach(one, recordingPath, until, entered);
        one.retryDistanceMs = FIRST_RETRY_MS;
        return ends;
      } catch (error) {
        one.retryMs = monotonicMs() + one.retryDistanceMs;
        one.retryDistanceMs = Math.min(LAST_RETRY_MS, one.retryDistanceMs * 2);
        if (!until.aborted && !isGone(error)) {
          this.#options.onEvent({ kind: "refused", program: one.program, why: whyOf(error) });
        }
        return null;
      } finally {
        one.leftMs = monotonicMs();
        one.turns += 1;
      }
    }).finally(entered);
  }

  async #attach(
    one: Watched,
    recordingPath: string,
    until: AbortSignal,
    entered: () => void,
  ): Promise<ProgramEnd | null> {
    const { onEvent } = this.#options;
    const { program } = one;
    const result = await attachAndRecord({
      pid: program.root.pid,
      identity: program.root.identity,
      recordingPath,
      follow: !program.hasOthersBelow,
      outcomeOf: this.#outcomeOf(program),
      ...this.#sentTo(recordingPath),
      budget: this.#budget,
      texts: this.#options.texts,
      deviceUse: this.#deviceUse,
      exitOf: this.#options.exitOf,
      rssMs: this.#options.pollMs,
      waitMs: WAIT_MS,
      forMs: Number.POSITIVE_INFINITY,
      until,
      onRecording: ({ longestPauseMs: pauseMs }) => {
        entered();
        onEvent({ kind: "attached", program, path: recordingPath, pauseMs });
      },
    });
    if (result.ended) {
      return { memoryEnds: result.open().memoryEnds };
    }
    const pauseMs = Math.max(result.attachPauseMs, result.detachPauseMs);
    onEvent({ kind: "left", program, path: recordingPath, pauseMs });
    return null;
  }

  /** The rest of a recording that the server lacks at its end is sent later, by kept/backlog.ts. */
  #sentTo(path: string): Pick<RecordingStart, "to" | "onSent"> {
    const { to, kept } = this.#options;
    return to === null
      ? {}
      : {
          to,
          onSent: (mayHaveBytes) =>
            mayHaveBytes === null ? kept.markSent(path) : kept.markUnsent(path, mayHaveBytes),
        };
  }

  #outcomeOf({ root }: Program): () => Promise<ProcessExit | null> {
    const sinceMs = monotonicMs();
    return () => this.#options.outcomeOf(root.pid, sinceMs);
  }

  recordOutside(one: Watched): void {
    const { texts, startedBelowMs, exitOf, lastSeenOf } = this.#options;
    this.#begin(one, "outside", async (recordingPath, until) => {
      const recording = new OutsideRecording({
        pid: one.program.root.pid,
        identity: one.program.root.identity,
        recordingPath,
        follow: !one.program.hasOthersBelow,
        outcomeOf: this.#outcomeOf(one.program),
        texts,
        deviceUse: this.#deviceUse,
        startedBelowMs,
        exitOf: (pid, aliveMs) => exitOf(pid, aliveMs) ?? lastSeenOf(pid, aliveMs),
        ...this.#sentTo(recordingPath),
      });
      await this.#outside.follow(recording, until);
      await recording.close();
      return until.aborted ? null : { memoryEnds: recording.memoryEnds };
    });
  }

  /** `record` resolves with how the program ended; with null if it was left, or nothing was recorded. */
  #begin(
    one: Watched,
    kind: Growing["kind"],
    record: (path: string, until: AbortSignal) => Promise<ProgramEnd | null>,
  ): Promise<void> {
    const stop = new AbortController();
    const { identity, pid } = one.program.root;
    const path = this.#options.kept.newPath(identity.service, pid, Date.now());
    const recorded = this.#options.kept
      .prepare()
      .then(() => {
        this.#options.kept.markUnsent(path);
        return record(path, stop.signal);
      })
      .catch((error) => {
        // It ended at this moment, or its file cannot be written.
        if (!isGone(error)) {
          this.#options.onEvent({ kind: "failed", program: one.program, why: whyOf(error) });
        }
        one.brokenUntilMs = monotonicMs() + FIRST_RETRY_MS;
        return null;
      });
    const ended = recorded.then((end) => {
      this.#options.kept.closed(path);
      if (one.growing?.stop === stop) {
        one.growing = null;
      }
      this.#options.onFree();
      if (end !== null) {
        this.#options.onEnded(one, growing, end);
      }
    });
    const rssBytes = rssOf(one.program.processes);
    const growing = { kind, path, sinceMs: monotonicMs(), rssBytes, stop, ended };
    one.growing = growing;
    return ended;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof TidemarkError && error.id === processGone(0).id;
}

export function whyOf(error: unknown): string {
  return error instanceof TidemarkError
    ? [error.what, error.why].filter((part) => part !== "").join(": ")
    : reasonOf(error).message;
}
