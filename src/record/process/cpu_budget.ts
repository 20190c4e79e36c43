/**
 * The CPU time that one Node process may spend on recording, as shares of a core. Recorders of several targets in the
 * same process divide it: with ten targets, each one is polled, profiled and looked up a tenth as often as it would be
 * alone, once the cost of that work reaches its share.
 */
export class CpuBudget {
  #targets = 0;

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
}
