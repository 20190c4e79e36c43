/** When the recorder acts next: often at first, then more and more rarely, and never above its share of a core. */
import type { Bytes, Millis } from "../../model/base/units.js";
import { CpuBudget } from "./cpu_budget.js";

/** Share of one core that polling may take, looks apart. */
const POLL_SHARE = 0.005;
/** Share of the time for which reading PSS may hold a target's memory lock. */
const EXPENSIVE_SHARE = 0.003;
/** Share of a core that looks may take; at first more, for a short run has its course from few. */
const LOOK_SHARE = 0.003;
const FIRST_LOOK_SHARE = 0.01;
const FIRST_LOOKS_MS = 120_000;
/** Share of a core that ledgers may take. */
const LEDGER_SHARE = 0.002;
const FIRST_LEDGER_MS = 5_000;
/** So many cost more than all later ones, for their code is new: their costs are let pass. */
const COLD_LEDGERS = 3;
/** Each comes when the run is this much longer than at the last one. */
const LEDGER_GROWTH = 0.06;
const FIRST_POLL_MS = 250;
/** A program may be over before that: the first polls come at this distance, or at half the run's length. */
const SHORTEST_POLL_MS = 25;
/** How long the first distance is kept, and how long costs are let pass: an interpreter warming up. */
const START_PHASE_MS = 3_000;
const FIRST_DISTANCE_FOR_MS = 60_000;
const LONGEST_POLL_MS = 120_000;

/** Running mean of the last few costs, so that one slow poll does not decide alone. */
class Cost {
  #mean: Millis = 0;

  add(cost: Millis): void {
    this.#mean = this.#mean === 0 ? cost : this.#mean * 0.8 + cost * 0.2;
  }

  /** Distance at which an action of this cost takes `share` of the time. */
  distance(share: number): Millis {
    return this.#mean / share;
  }
}

export class PollSchedule {
  readonly #polls = new Cost();
  readonly #expensive = new Cost();
  #nextExpensiveMs = 0;

  readonly #budget: CpuBudget;

  constructor(budget = new CpuBudget()) {
    this.#budget = budget;
  }

  /** `cpuMs`: what the poll took of a core. */
  polled(elapsedMs: Millis, cpuMs: Millis): void {
    if (elapsedMs > START_PHASE_MS) {
      this.#polls.add(cpuMs);
    }
  }

  /**
   * From one poll to the next: 250 ms in the first minute, twice that in the first four, and so on; less
   * in the first half second.
   */
  distance(elapsedMs: Millis): Millis {
    if (elapsedMs < 2 * FIRST_POLL_MS) {
      return Math.max(SHORTEST_POLL_MS, elapsedMs / 2);
    }
    const doublings = Math.max(
      0,
      Math.floor(Math.log(elapsedMs / FIRST_DISTANCE_FOR_MS) / Math.log(4)) + 1,
    );
    const planned = FIRST_POLL_MS * 2 ** (Number.isFinite(doublings) ? doublings : 0);
    return Math.min(
      LONGEST_POLL_MS,
      Math.max(planned, this.#polls.distance(this.#budget.perTarget(POLL_SHARE))),
    );
  }

  /** Whether this poll reads PSS, USS and sockets, too. */
  expensiveIsDue(elapsedMs: Millis): boolean {
    return elapsedMs >= this.#nextExpensiveMs;
  }

  expensiveRead(elapsedMs: Millis, cpuMs: Millis): void {
    this.#expensive.add(cpuMs);
    this.#nextExpensiveMs =
      elapsedMs +
      Math.max(
        4 * FIRST_POLL_MS,
        this.#expensive.distance(this.#budget.perTarget(EXPENSIVE_SHARE)),
      );
  }
}

/** Each look comes when the run is this much longer than at the last one: some 130 looks a month. */
const LOOK_GROWTH = 0.12;
const FIRST_LOOK_MS = 1_000;
/** May read the symbols of all libraries: the next one, when the run is twice as long, tells what a look costs. */
const COLD_LOOKS = 1;
/** A high this much above the last one is worth a look of its own. */
const PEAK_GROWTH = 0.25;
const SMALLEST_PEAK_BYTES = 4 << 20;

export class LookSchedule {
  #cost = new Cost();
  #taken = 0;
  #lastMs = 0;
  #highBytes: Bytes = SMALLEST_PEAK_BYTES;

  readonly #budget: CpuBudget;

  constructor(budget = new CpuBudget()) {
    this.#budget = budget;
  }

  /** What the clock or the tree's live bytes ask for now; null: nothing. */
  due(elapsedMs: Millis, liveBytes: Bytes): "poll" | "peak" | null {
    const since = elapsedMs - this.#lastMs;
    const longest = this.#taken > COLD_LOOKS ? Number.POSITIVE_INFINITY : this.#lastMs;
    const share = elapsedMs < FIRST_LOOKS_MS ? FIRST_LOOK_SHARE : LOOK_SHARE;
    if (since < Math.min(this.#cost.distance(this.#budget.perTarget(share)), longest)) {
      return null;
    }
    if (since >= FIRST_POLL_MS && liveBytes >= this.#highBytes * (1 + PEAK_GROWTH)) {
      return "peak";
    }
    return since >= Math.max(FIRST_LOOK_MS, this.#lastMs * LOOK_GROWTH) ? "poll" : null;
  }

  looked(elapsedMs: Millis, liveBytes: Bytes, cpuMs: Millis): void {
    if (elapsedMs > START_PHASE_MS) {
      this.#taken += 1;
      if (this.#taken === COLD_LOOKS + 1) {
        this.#cost = new Cost();
      }
      this.#cost.add(cpuMs);
    }
    this.#lastMs = elapsedMs;
    this.#highBytes = Math.max(this.#highBytes, liveBytes);
  }
}

export class LedgerSchedule {
  readonly #cost = new Cost();
  #nextMs = FIRST_LEDGER_MS;
  #taken = 0;

  readonly #budget: CpuBudget;

  constructor(budget = new CpuBudget()) {
    this.#budget = budget;
  }

  due(elapsedMs: Millis): boolean {
    return elapsedMs >= this.#nextMs;
  }

  read(elapsedMs: Millis, cpuMs: Millis): void {
    this.#taken += 1;
    if (this.#taken > COLD_LEDGERS) {
      this.#cost.add(cpuMs);
    }
    const distance = this.#cost.distance(this.#budget.perTarget(LEDGER_SHARE));
    this.#nextMs = elapsedMs + Math.max(FIRST_LEDGER_MS, elapsedMs * LEDGER_GROWTH, distance);
  }
}
