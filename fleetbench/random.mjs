/** Repeatable random numbers: the same seed gives the same fleet. */

/** Mulberry32. */
export class Random {
  #state;

  /** @param {number} seed a whole number */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** From 0 to below 1. */
  unit() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** @param {number} low @param {number} high */
  between(low, high) {
    return low + this.unit() * (high - low);
  }

  /** Evenly over orders of magnitude. @param {number} low @param {number} high */
  magnitude(low, high) {
    return Math.exp(this.between(Math.log(low), Math.log(high)));
  }

  /** Whole numbers, both ends included. @param {number} low @param {number} high */
  whole(low, high) {
    return Math.floor(this.between(low, high + 1));
  }

  /** @param {number} probability */
  chance(probability) {
    return this.unit() < probability;
  }

  /** @template Item @param {readonly Item[]} items @returns {Item} */
  pick(items) {
    return /** @type {Item} */ (items[this.whole(0, items.length - 1)]);
  }

  /** Standard normal. */
  normal() {
    return Math.sqrt(-2 * Math.log(1 - this.unit())) * Math.cos(2 * Math.PI * this.unit());
  }
}
