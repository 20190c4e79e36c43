/**
 * The CPU time that one Node process may spend on recording.
 *
 *     allowed(t) = FIRST_MS + SHARE * t        about 1.5 s in the first minute, Node's start included; 0.5 % of a core after
 *
 * Regular work (polls, profiles, ledgers) keeps to shares of a core that add up to less (schedule.ts); if more is spent in
 * the first minute, by code that is not compiled yet or by a lookup, most shares shrink to what is left. Lookups take
 * what is left, and wait until enough is. A lookup for a leak that has waited too long may overdraw the budget
 * by CREDIT_MS; nothing more is lent until that is paid back. Recorders of several targets in the same process
 * divide the budget: with ten
 * targets, each one is polled, profiled and looked up a tenth as often as it would be alone, once the cost of
 * that work reaches its share.
 */
import { monotonicMs, processCpu } from "../../linux/this_process/clock.js";
import type { Millis } from "../../model/base/units.js";

/** Share of a core. */
const SHARE = 0.005;
/** Node's own start, usually 0.15 s, comes before it. */
const FIRST_MS: Millis = 1_000;
/** The time in which regular work may use more than later: `FIRST_SHARE` of a core, for short runs. */
const FIRST_MINUTE_MS: Millis = 60_000;
const FIRST_SHARE = 0.009;
/** In the first minute, the shares of regular work shrink at most to this part: with less, growth would show too late. */
const LEAST_PACE = 0.5;
/** Enough for the heap of a program that has loaded PyTorch, with models of a few hundred MiB. */
const CREDIT_MS: Millis = 2_500;

/** Both since the start of the budget. */
interface Meter {
  elapsedMs(): Millis;
  spentMs(): Millis;
}

export class CpuBudget {
  #targets = 0;
  readonly #meter: Meter;

  /** `meter`: CPU time of this process from now on; tests pass their own. */
  constructor(meter = meterOfThisProcess()) {
    this.#meter = meter;
  }

  /**
   * Registers a recorder that starts to use the budget; it calls the returned function, once or more, when it
   * stops.
   */
  join(): () => void {
    this.#targets += 1;
    let joined = true;
    return () => {
      this.#targets -= joined ? 1 : 0;
      joined = false;
    };
  }

  /** The part of `whole`, a share of a core or an amount of CPU time, that one target may use now. */
  perTarget(whole: number): number {
    return whole / Math.max(1, this.#targets);
  }

  /** The part of `share`, a share of a core for regular work that may become rarer, that one target may use now. */
  shareNow(share: number): number {
    const leftMs = FIRST_MINUTE_MS - this.#meter.elapsedMs();
    const allowedMs = FIRST_MS + SHARE * FIRST_MINUTE_MS - this.#meter.spentMs();
    const pace = leftMs > 0 ? allowedMs / (FIRST_SHARE * leftMs) : 1;
    return this.perTarget(share) * Math.max(LEAST_PACE, Math.min(1, pace));
  }

  /**
   * CPU time that one target may spend now on work that can wait. The need of regular work until the end of the
   * first minute is reserved. Negative: the amount that was overspent and is still owed.
   */
  spareMs(): Millis {
    const elapsedMs = this.#meter.elapsedMs();
    const setAside = Math.max(0, FIRST_MINUTE_MS - elapsedMs) * (FIRST_SHARE - SHARE);
    return this.perTarget(FIRST_MS + SHARE * elapsedMs - this.#meter.spentMs() - setAside);
  }

  /**
   * The most that one target may spend if it overdraws the budget now; nothing while something is owed. `isFirst`: the
   * target has made no lookup, so a debt comes from regular work on a busy machine, and does not count.
   */
  withCreditMs(isFirst: boolean): Millis {
    const spareMs = this.spareMs();
    return spareMs < 0 && !isFirst ? spareMs : spareMs + this.perTarget(CREDIT_MS);
  }
}

function meterOfThisProcess(): Meter {
  const startMs = monotonicMs();
  return { elapsedMs: () => monotonicMs() - startMs, spentMs: processCpu() };
}
