/**
 * The time, of a clock that may jump. A wrong clock would make retention remove everything, and refuse every sender: a jump
 * counts only once it has lasted for a day.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";

/** Smaller differences are corrections. */
const SMALLEST_JUMP_MS: Millis = 300_000;
/** A server that was stopped for longer may have a wrong clock. */
const LONGEST_STOP_MS: Millis = 86_400_000;
const TRUSTED_AFTER_MS: Millis = 86_400_000;

interface Clocks {
  readonly wallMs: () => TimeMs;
  /** Never jumps; begins at any time. */
  readonly steadyMs: () => Millis;
}

export class SteadyClock {
  readonly #clocks: Clocks;
  readonly #warn: (text: string) => void;
  /** The time at which the steady clock began. */
  #base: TimeMs;
  #jumpedAtMs: Millis | null = null;

  /** `lastMs`: when data was last stored, if any is; the time that has passed since then is not known. */
  constructor(
    warn: (text: string) => void,
    lastMs: TimeMs | null = null,
    clocks: Clocks = { wallMs: () => Date.now(), steadyMs: () => performance.now() },
  ) {
    this.#clocks = clocks;
    this.#warn = warn;
    const wallMs = clocks.wallMs();
    const isFar = lastMs !== null && Math.abs(wallMs - lastMs) > LONGEST_STOP_MS;
    this.#base = (isFar ? lastMs : wallMs) - clocks.steadyMs();
  }

  /** The earlier of the possible times: what is too old at this time is too old. */
  earliestMs(): TimeMs {
    return Math.min(...this.#times());
  }

  /** The later of them: what is in the future at this time is. */
  latestMs(): TimeMs {
    return Math.max(...this.#times());
  }

  #times(): readonly [TimeMs, TimeMs] {
    const { wallMs, steadyMs } = this.#clocks;
    const [wall, elapsed] = [wallMs(), steadyMs()];
    const jump = wall - (this.#base + elapsed);
    if (Math.abs(jump) < SMALLEST_JUMP_MS) {
      if (this.#jumpedAtMs !== null) {
        this.#jumpedAtMs = null;
        this.#warn("the clock is back");
      }
      this.#base = wall - elapsed;
    } else if (this.#jumpedAtMs === null) {
      this.#jumpedAtMs = elapsed;
      const minutes = Math.round(Math.abs(jump) / 60_000);
      this.#warn(
        `the clock is ${minutes} min ${jump > 0 ? "ahead of" : "behind"} the last known time; retention uses the earlier time for a day, in case the clock is wrong`,
      );
    } else if (elapsed - this.#jumpedAtMs > TRUSTED_AFTER_MS) {
      this.#jumpedAtMs = null;
      this.#base = wall - elapsed;
    }
    return [wall, this.#base + elapsed];
  }
}
