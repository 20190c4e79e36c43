/**
 * The time, of a clock that may jump. A wrong clock would make retention remove everything, and refuse every sender: a jump
 * counts only once it has lasted for a day.
 */
import { uptime } from "node:os";
import type { Millis, TimeMs } from "../../model/base/units.js";

/** Smaller differences are corrections. */
const SMALLEST_JUMP_MS: Millis = 300_000;
/** A server that was stopped for longer may have a wrong clock. */
const LONGEST_STOP_MS: Millis = 86_400_000;
const TRUSTED_AFTER_MS: Millis = 86_400_000;

interface Clocks {
  readonly wallMs: () => TimeMs;
  /** Never jumps, and goes on while the machine sleeps; begins at any time. */
  readonly steadyMs: () => Millis;
}

export class SteadyClock {
  readonly #clocks: Clocks;
  readonly #warn: (text: string) => void;
  /** The time at which the steady clock began. */
  #base: TimeMs;
  /** When the clock jumped, and how far. A further jump begins a new day of doubt. */
  #jumped: { readonly atMs: Millis; readonly byMs: Millis } | null = null;

  /** `lastMs`: the last known time before this start; null: none. The time that has passed since then is not known. */
  constructor(
    warn: (text: string) => void,
    lastMs: TimeMs | null = null,
    clocks: Clocks = { wallMs: () => Date.now(), steadyMs: () => 1_000 * uptime() },
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
      if (this.#jumped !== null) {
        this.#jumped = null;
        this.#warn("the clock is back");
      }
      this.#base = wall - elapsed;
    } else if (this.#jumped === null || Math.abs(jump - this.#jumped.byMs) >= SMALLEST_JUMP_MS) {
      this.#jumped = { atMs: elapsed, byMs: jump };
      const minutes = Math.round(Math.abs(jump) / 60_000);
      this.#warn(
        `the clock is ${minutes} min ${jump > 0 ? "ahead of" : "behind"} the last known time; retention uses the earlier time for a day, in case the clock is wrong`,
      );
    } else if (elapsed - this.#jumped.atMs > TRUSTED_AFTER_MS) {
      this.#jumped = null;
      this.#base = wall - elapsed;
    }
    return [wall, this.#base + elapsed];
  }
}
