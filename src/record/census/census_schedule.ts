/** When objects are counted: every few seconds at first, ever more rarely, and never above a share of a core. */
import type { Millis } from "../../model/base/units.js";

/** Of this process, for the minutes that somebody watches: the program never waits for it. */
const CENSUS_SHARE = 0.05;
const FIRST_MS: Millis = 4_000;
/** Each comes when the watch is this much longer than at the last one. */
const GROWTH = 0.06;

export class CensusSchedule {
  #costMs: Millis = 0;
  #nextMs: Millis = FIRST_MS;
  #counts = 0;

  due(elapsedMs: Millis): boolean {
    return elapsedMs >= this.#nextMs;
  }

  /** `elapsedMs`: when it was asked for. The first costs more than all later ones, for its code is new. */
  counted(elapsedMs: Millis, cpuMs: Millis): void {
    this.#counts += 1;
    if (this.#counts > 1) {
      this.#costMs = this.#counts === 2 ? cpuMs : this.#costMs * 0.8 + cpuMs * 0.2;
    }
    this.#nextMs = elapsedMs + Math.max(FIRST_MS, elapsedMs * GROWTH, this.#costMs / CENSUS_SHARE);
  }
}
