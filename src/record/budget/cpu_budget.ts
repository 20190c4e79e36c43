/**
 * The CPU time that one Node process may spend on recording.
 *
 *     allowed(t) = FIRST_MS + SHARE * t        about 1.5 s in the first minute, Node's start included; 0.5 % of a core after
 *
 * Regular work (polls, profiles, ledgers) keeps to shares of a core that add up to less (schedule.ts). Lookups take
 * what is left, and wait until enough is. One that would find out who holds what leaks, and has waited in vain, may
 * overdraw the budget by CREDIT_MS; nothing is lent again before that is paid back. Recorders of several targets in the same process divide the budget: with ten
 * targets, each one is polled, profiled and looked up a tenth as often as it would be alone, once the cost of that work
 * reaches its share.
 */
import { monotonicMs, processCpu } from "../../linux/this_process/clock.js";
import type { Millis } from "../../model/base/units.js";

/** Share of a core. */
const SHARE = 0.005;
/** Node's own start, 0.15 s as a rule, comes before it. */
const FIRST_MS: Millis = 1_000;
/** The time in which regular work may take more than later: `FIRST_SHARE` of a core, for short runs. */
const FIRST_MINUTE_MS: Millis = 60_000;
const FIRST_SHARE = 0.009;
/** Enough for the heap of a program that has loaded PyTorch, with models of some hundred MiB. */
const CREDIT_MS: Millis = 2_500;

/** Both from the start of the budget on. */
interface Meter {
  elapsedMs(): Millis;
  spentMs(): Millis;
}

export class CpuBudget {
  #targets = 0;
  readonly #meter: Meter;

  /** `meter`: of this process from now on; given by tests. */
  constructor(meter = meterOfThisProcess()) {
    this.#meter = meter;
  }

  /** A recorder starts to use the budget; it calls the returned function, once or more, when it stops. */
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

  /**
   * CPU time that one target may spend now on work that can wait. What regular work needs until the end of the first
   * minute is set aside. Negative: so much was spent too early, and is still owed.
   */
  spareMs(): Millis {
    const elapsedMs = this.#meter.elapsedMs();
    const setAside = Math.max(0, FIRST_MINUTE_MS - elapsedMs) * (FIRST_SHARE - SHARE);
    return this.perTarget(FIRST_MS + SHARE * elapsedMs - this.#meter.spentMs() - setAside);
  }

  /** What one target may spend at most if it overdraws the budget now: nothing while something is owed. */
  withCreditMs(): Millis {
    const spareMs = this.spareMs();
    return spareMs < 0 ? spareMs : spareMs + this.perTarget(CREDIT_MS);
  }

  /** Time until what is owed now is paid back, if nothing else is spent; 0: nothing is owed. */
  paidBackInMs(): Millis {
    return Math.max(0, -this.spareMs() / this.perTarget(SHARE));
  }
}

function meterOfThisProcess(): Meter {
  const startMs = monotonicMs();
  return { elapsedMs: () => monotonicMs() - startMs, spentMs: processCpu() };
}
