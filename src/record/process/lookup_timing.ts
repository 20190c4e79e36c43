/**
 * When holders are looked up. A lookup takes up to several seconds of CPU time, so it is rare: first when growth is
 * suspected, then each time the run is longer by a factor, and only if the recorder's CPU budget and the machine's memory
 * have room. If sites only fill up or keep little, or their holders are known, lookups come later and more rarely. If something leaks whose holder is
 * still unknown, and the lookup has waited too long, the budget is overdrawn once. If a lookup is made at the end of the
 * recording anyway, because the program runs on then, the first minute is not overdrawn, nor is the one before the end.
 * A lookup of a leak that came late, or was due and never made, is reported.
 */
import type { Bytes, Millis } from "../../model/base/units.js";
import type { CpuBudget } from "../budget/cpu_budget.js";
import { madeLate, notMade } from "./lookup_sentences.js";

/** When the first lookup comes, and the factor of the run's length at each later one. Start-up is not growth. */
interface Pace {
  readonly firstMs: Millis;
  readonly nextAfter: number;
}
export const FIRST_LOOKUP_MS: Millis = 8_000;
const SUSPECTED: Pace = { firstMs: FIRST_LOOKUP_MS, nextAfter: 2.5 };
/**
 * Used if the last copy was torn just above the objects, or they had no holder; or if objects were counted for
 * the first time, since one count shows no growth.
 */
const AGAIN: Pace = { firstMs: FIRST_LOOKUP_MS, nextAfter: 1.4 };
const FILLING: Pace = { firstMs: 20_000, nextAfter: 5 };
/** Expected cost of the first lookup: a constant part, and one proportional to the program's memory. */
const EXPECTED_MS: Millis = 350;
const EXPECTED_MS_A_BYTE = 3 / 2 ** 20;
/** How long a lookup of a leak waits for the budget: so that what grows only at the start is not taken for one. */
const URGENT_AFTER_MS: Millis = 4_000;
/** The time after the start, and before the end, in which a lookup waits for the end. */
const FIRST_MINUTE_MS: Millis = 60_000;
const LAST_MINUTE_MS: Millis = 60_000;
/** Shorter delays are not reported. */
const LEAST_DELAY_MS: Millis = 10_000;
/** CPU time for a lookup at the end. */
const LAST_MS: Millis = 3_000;
/** A lookup that may as well wait for the end needs more room than expected, because it may take longer. */
const MARGIN = 1.15;
/** Memory that a lookup needs: a constant part, and the columns of a graph, for a program that has only objects. */
const NEEDED_BYTES: Bytes = 50 * 2 ** 20;
const NEEDED_OF_MEMORY = 0.75;
/** With five million objects, the most that are looked up, whatever their buffers hold. */
const MOST_NEEDED_BYTES: Bytes = 500 * 2 ** 20;

export class LookupTiming {
  /** Memory of the recorded program at the newest poll. */
  anonymousBytes: Bytes = 0;
  /** Memory available for this process and the program's growth, as last read. */
  roomBytes: Bytes = Number.POSITIVE_INFINITY;
  /** CPU time of the newest lookup; null: none has finished yet. */
  costMs: Millis | null = null;
  /** The newest lookup was made soon after another, or asks for the next one soon. */
  isAgain = false;
  /** For the newest lookup: the length of the run. */
  #askedMs: Millis = 0;
  /** The program ended during the newest lookup. */
  #cutOff = false;
  /** Since when a lookup has been due without room in the budget; null: none is. */
  #delayedMs: Millis | null = null;
  /** The delayed one would look up a suspect whose holder is unknown. */
  #delaysSuspects = false;
  /** It waits for memory, or did so for a time. */
  #delaysForMemory = false;
  /** Since when a lookup of a suspect has waited for the budget; null: none does. */
  #suspectsDelayedMs: Millis | null = null;
  /** When the first lookup was made, if it had waited for the budget; null: it had not. */
  #lateMs: Millis | null = null;
  readonly #budget: CpuBudget;
  readonly #endsMs: Millis | null;

  /**
   * `endsMs`: the latest end of the recording if a lookup is made then, after it was started; infinite if it is not known
   * yet; null: none is made at the end, since the program ends with the recording.
   */
  constructor(budget: CpuBudget, endsMs: Millis | null = null) {
    this.#budget = budget;
    this.#endsMs = endsMs;
  }

  /** `suspected`: a site may leak, and the last lookup did not answer what holds it. */
  isDue(elapsedMs: Millis, suspected: boolean): boolean {
    const { firstMs, nextAfter } = suspected ? (this.isAgain ? AGAIN : SUSPECTED) : FILLING;
    return elapsedMs >= Math.max(firstMs, this.#askedMs * nextAfter);
  }

  /** The newest snapshot decides whether anything is suspected. */
  forgetSuspects(): void {
    this.#delaysSuspects = false;
  }

  /**
   * CPU time for a due lookup; null if the budget or the memory has no room for it yet. `isUrgent`: a site may leak, and
   * its holder is unknown. `isLast`: it is the last chance, so the budget does not matter.
   */
  affordedMs(
    elapsedMs: Millis,
    { isUrgent, isLast }: { readonly isUrgent: boolean; readonly isLast: boolean },
  ): Millis | null {
    const mostMs = this.#lacksMemory(elapsedMs)
      ? null
      : isLast
        ? LAST_MS
        : this.#budgetedMs(elapsedMs, isUrgent);
    this.#delaysSuspects = isUrgent && mostMs === null;
    if (this.#delaysSuspects && !this.#delaysForMemory) {
      this.#suspectsDelayedMs ??= elapsedMs;
    }
    return mostMs;
  }

  /** Whether a lookup of suspects has waited long enough, and may overdraw the budget. */
  mayOverdraw(elapsedMs: Millis): boolean {
    return this.#delaysSuspects && !this.#delaysForMemory && this.#overdrawnMs(elapsedMs) !== null;
  }

  /** A lookup is made. */
  asked(elapsedMs: Millis): void {
    this.#delayedMs = null;
    this.#delaysSuspects = false;
    this.#delaysForMemory = false;
    const isLate = elapsedMs - (this.#suspectsDelayedMs ?? elapsedMs) >= LEAST_DELAY_MS;
    this.#lateMs = this.#askedMs === 0 && isLate ? elapsedMs : this.#lateMs;
    this.#suspectsDelayedMs = null;
    this.#askedMs = elapsedMs;
  }

  /** `cutOff`: the program ended during it. `again`: the next one should come soon. */
  answered({ cpuMs, cutOff, again }: { cpuMs: Millis; cutOff: boolean; again: boolean }): void {
    this.costMs = cpuMs;
    this.#cutOff = cutOff;
    this.isAgain = again;
  }

  /** What to note at the end if a lookup of suspects was due, and late, not made or not finished; null: nothing. */
  delay(
    elapsedMs: Millis,
    { lookedUp, isBusy }: { readonly lookedUp: boolean; readonly isBusy: boolean },
  ): string | null {
    if (!lookedUp && (this.#cutOff || isBusy)) {
      return notMade(null, this.#cutOff ? "ended" : "unfinished");
    }
    const waitedMs = elapsedMs - (this.#delayedMs ?? elapsedMs);
    if (this.#delaysSuspects && waitedMs >= LEAST_DELAY_MS) {
      return notMade(
        lookedUp ? elapsedMs - this.#askedMs : null,
        this.#delaysForMemory ? "memory" : "budget",
      );
    }
    return lookedUp && this.#lateMs !== null ? madeLate(this.#lateMs) : null;
  }

  /** Whether a due lookup has to wait for memory; notes it. */
  #lacksMemory(elapsedMs: Millis): boolean {
    const most = Math.min(MOST_NEEDED_BYTES, NEEDED_OF_MEMORY * this.anonymousBytes);
    if (this.roomBytes >= NEEDED_BYTES + most) {
      return false;
    }
    this.#delayedMs ??= elapsedMs;
    this.#delaysForMemory = true;
    return true;
  }

  #budgetedMs(elapsedMs: Millis, isUrgent: boolean): Millis | null {
    const spareMs = this.#budget.spareMs();
    const margin = this.#waitsForEnd(elapsedMs) ? MARGIN : 1;
    if (spareMs >= margin * this.#expectedMs) {
      return spareMs;
    }
    this.#delayedMs ??= elapsedMs;
    return isUrgent ? this.#overdrawnMs(elapsedMs) : null;
  }

  /** CPU time for a lookup that has waited long enough, and overdraws the budget; null if it has not, or may not. */
  #overdrawnMs(elapsedMs: Millis): Millis | null {
    if (this.#waitsForEnd(elapsedMs)) {
      return null;
    }
    const waitedMs = elapsedMs - (this.#delayedMs ?? elapsedMs);
    const mostMs = this.#budget.withCreditMs(this.costMs === null);
    return waitedMs >= URGENT_AFTER_MS && mostMs >= this.#expectedMs ? mostMs : null;
  }

  #waitsForEnd(elapsedMs: Millis): boolean {
    const endsMs = this.#endsMs;
    return endsMs !== null && (elapsedMs < FIRST_MINUTE_MS || endsMs - elapsedMs <= LAST_MINUTE_MS);
  }

  get #expectedMs(): Millis {
    return this.costMs ?? EXPECTED_MS + EXPECTED_MS_A_BYTE * this.anonymousBytes;
  }
}
