/**
 * Polls all recordings from outside at the same moments, with one timer: this process wakes once, and reads what they
 * share once.
 */
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type { OutsideRecording } from "../../record/index.js";

interface Polled {
  readonly recording: Pick<OutsideRecording, "pid" | "poll">;
  readonly end: (error?: unknown) => void;
  polledMs: Millis;
}

export class OutsidePolls {
  readonly #everyMs: () => Millis;
  readonly #all = new Set<Polled>();
  readonly #byPid = new Map<Pid, Polled>();
  #timer: NodeJS.Timeout | null = null;

  /** `everyMs`: interval of the polls, which may change. */
  constructor(everyMs: () => Millis) {
    this.#everyMs = everyMs;
  }

  /**
   * Polls at once, then at each interval. Resolves when the program has ended or `until` is aborted; rejects if a poll
   * throws.
   */
  async follow(recording: Polled["recording"], until: AbortSignal): Promise<void> {
    if (!recording.poll() || until.aborted) {
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const left = () => one.end();
      const one: Polled = {
        recording,
        polledMs: monotonicMs(),
        end: (error) => {
          this.#all.delete(one);
          if (this.#byPid.get(recording.pid) === one) {
            this.#byPid.delete(recording.pid);
          }
          until.removeEventListener("abort", left);
          error === undefined ? resolve() : reject(error);
        },
      };
      until.addEventListener("abort", left);
      this.#all.add(one);
      this.#byPid.set(recording.pid, one);
      this.#timer ??= this.#wait();
    });
  }

  /** A process has ended: its recording ends now. */
  ended(pid: Pid): void {
    const one = this.#byPid.get(pid);
    if (one !== undefined) {
      pollOne(one);
    }
  }

  #wait(): NodeJS.Timeout {
    const everyMs = this.#everyMs();
    // After a pause of this process, the events that came meanwhile are read before the polls.
    const poll = () => setImmediate(() => this.#pollAll(everyMs));
    return setTimeout(poll, everyMs - (monotonicMs() % everyMs));
  }

  /** A recording that was polled less than half an interval ago waits for the next moment. */
  #pollAll(everyMs: Millis): void {
    const startMs = monotonicMs();
    for (const one of [...this.#all]) {
      if (startMs - one.polledMs >= everyMs / 2) {
        one.polledMs = startMs;
        pollOne(one);
      }
    }
    this.#timer = this.#all.size === 0 ? null : this.#wait();
  }
}

function pollOne({ recording, end }: Polled): void {
  try {
    if (!recording.poll()) {
      end();
    }
  } catch (error) {
    end(error);
  }
}
