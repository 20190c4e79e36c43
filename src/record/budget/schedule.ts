/**
 * Decides when the recorder acts next: often at first, then more and more rarely, and never above its share of
 * a core.
 */
import type { Bytes, Millis } from "../../model/base/units.js";
import { CpuBudget } from "./cpu_budget.js";

/** Share of a core; higher at first, because a short run has few readings. */
interface Share {
  readonly atFirst: number;
  readonly later: number;
}
const FIRST_PHASE_MS = 60_000;
/** Share of one core that polling may use, without profiles. */
const POLL_SHARE: Share = { atFirst: 0.005, later: 0.0015 };
/** Reading PSS makes the kernel walk all pages, under the target's memory lock. */
const EXPENSIVE_SHARE: Share = { atFirst: 0.002, later: 0.0008 };
/** A verdict rests on snapshots, so this share does not shrink if the first minute's budget is short. */
const SNAPSHOT_SHARE: Share = { atFirst: 0.004, later: 0.001 };
const LEDGER_SHARE: Share = { atFirst: 0.0025, later: 0.0007 };
const FIRST_LEDGER_MS = 5_000;
/** Cost of the first one as a multiple of later ones, because its code is not compiled yet. */
const COLD_LEDGER = 3;
/** Each one comes when the run is this factor longer than at the last one. */
const LEDGER_GROWTH = 0.06;
const FIRST_POLL_MS = 250;
/** A program may end before that, so the first polls come at this interval, or at half the run's length. */
const SHORTEST_POLL_MS = 25;
/** How long the first interval is used, and how long costs are ignored while the interpreter warms up. */
const START_PHASE_MS = 3_000;
/** From this many processes on, early polls are expensive because of them, not because their code is not compiled yet. */
const MANY_PROCESSES = 10;
const FIRST_DISTANCE_FOR_MS = 60_000;
const LONGEST_POLL_MS = 120_000;
/**
 * In the first phase polls come once a second, because fewer would not show growth, unless that would use more
 * than this share of a core.
 */
const SLOWEST_FIRST_POLL_MS = 1_000;
const MOST_OF_FIRST_POLLS = 0.015;

/** Running mean of the last few costs, so that one slow poll does not decide alone. */
class Cost {
  #mean: Millis = 0;

  add(cost: Millis): void {
    this.#mean = this.#mean === 0 ? cost : this.#mean * 0.8 + cost * 0.2;
  }

  /** Interval at which an action of this cost uses `share` of the time. */
  distance(share: number): Millis {
    return this.#mean / share;
  }
}

function shareAt({ atFirst, later }: Share, elapsedMs: Millis): number {
  return elapsedMs < FIRST_PHASE_MS ? atFirst : later;
}

function plannedDistance(elapsedMs: Millis): Millis {
  if (elapsedMs < 2 * FIRST_POLL_MS) {
    return Math.max(SHORTEST_POLL_MS, elapsedMs / 2);
  }
  const doublings = Math.floor(Math.log(elapsedMs / FIRST_DISTANCE_FOR_MS) / Math.log(4)) + 1;
  return FIRST_POLL_MS * 2 ** Math.max(0, doublings);
}

export interface PollCost {
  readonly ownCpuMs: Millis;
  /** CPU time since the last step: timers, garbage collection, compilation. */
  readonly waitCpuMs: Millis;
  readonly processes: number;
  /** It also read PSS, USS and sockets. */
  readonly expensive: boolean;
}

/**
 * The cost is kept for each process, because a launcher (a pyenv shim, `make`) may start dozens that end before the
 * program does anything.
 */
export class PollSchedule {
  readonly #polls = new Cost();
  readonly #pollsAlone = new Cost();
  readonly #expensive = new Cost();
  #nextExpensiveMs = 0;
  #processes = 1;

  readonly #budget: CpuBudget;

  constructor(budget = new CpuBudget()) {
    this.#budget = budget;
  }

  polled(elapsedMs: Millis, poll: PollCost): void {
    this.#processes = Math.max(1, poll.processes);
    if (poll.expensive) {
      this.#expensiveRead(elapsedMs, poll.ownCpuMs);
    } else if (elapsedMs > START_PHASE_MS || poll.processes >= MANY_PROCESSES) {
      this.#polls.add((poll.ownCpuMs + poll.waitCpuMs) / this.#processes);
      this.#pollsAlone.add(poll.ownCpuMs / this.#processes);
    }
  }

  /**
   * From one poll to the next: 250 ms in the first minute, twice that in the first four, and so on; less
   * in the first half second; more where polls are expensive, in the first minute up to a second.
   */
  distance(elapsedMs: Millis): Millis {
    const share = this.#budget.shareNow(shareAt(POLL_SHARE, elapsedMs));
    const most = this.#budget.perTarget(MOST_OF_FIRST_POLLS);
    const longest =
      elapsedMs < FIRST_PHASE_MS
        ? Math.max(SLOWEST_FIRST_POLL_MS, this.#processes * this.#pollsAlone.distance(most))
        : LONGEST_POLL_MS;
    const wanted = Math.max(
      plannedDistance(elapsedMs),
      this.#processes * this.#polls.distance(share),
    );
    return Math.min(LONGEST_POLL_MS, longest, wanted);
  }

  /** Whether this poll also reads PSS, USS and sockets. */
  expensiveIsDue(elapsedMs: Millis): boolean {
    return elapsedMs >= this.#nextExpensiveMs;
  }

  #expensiveRead(elapsedMs: Millis, cpuMs: Millis): void {
    this.#expensive.add(cpuMs);
    this.#nextExpensiveMs =
      elapsedMs +
      Math.max(
        4 * FIRST_POLL_MS,
        this.#expensive.distance(this.#budget.shareNow(shareAt(EXPENSIVE_SHARE, elapsedMs))),
      );
  }
}

/** Each snapshot is taken when the run is this factor longer than at the last one: about 130 snapshots per month. */
const LOOK_GROWTH = 0.12;
const FIRST_LOOK_MS = 1_000;
/**
 * The first snapshot may read the symbols of all libraries. The next one, when the run is twice as long, shows
 * the usual cost.
 */
const COLD_SNAPSHOTS = 1;
/** A new maximum this much above the last one triggers a snapshot. */
const PEAK_GROWTH = 0.25;
const SMALLEST_PEAK_BYTES = 4 << 20;

export class SnapshotSchedule {
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
    const longest = this.#taken > COLD_SNAPSHOTS ? Number.POSITIVE_INFINITY : this.#lastMs;
    const share = this.#budget.perTarget(shareAt(SNAPSHOT_SHARE, elapsedMs));
    if (since < Math.min(this.#cost.distance(share), longest)) {
      return null;
    }
    if (since >= FIRST_POLL_MS && liveBytes >= this.#highBytes * (1 + PEAK_GROWTH)) {
      return "peak";
    }
    return since >= Math.max(FIRST_LOOK_MS, this.#lastMs * LOOK_GROWTH) ? "poll" : null;
  }

  taken(elapsedMs: Millis, liveBytes: Bytes, cpuMs: Millis): void {
    if (elapsedMs > START_PHASE_MS) {
      this.#taken += 1;
      if (this.#taken === COLD_SNAPSHOTS + 1) {
        this.#cost = new Cost();
      }
      this.#cost.add(cpuMs);
    }
    this.#lastMs = elapsedMs;
    this.#highBytes = Math.max(this.#highBytes, liveBytes);
  }
}

export class LedgerSchedule {
  #cost = new Cost();
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
    if (this.#taken === 2) {
      this.#cost = new Cost();
    }
    this.#cost.add(this.#taken === 1 ? cpuMs / COLD_LEDGER : cpuMs);
    const distance = this.#cost.distance(this.#budget.shareNow(shareAt(LEDGER_SHARE, elapsedMs)));
    this.#nextMs = elapsedMs + Math.max(FIRST_LEDGER_MS, elapsedMs * LEDGER_GROWTH, distance);
  }
}
