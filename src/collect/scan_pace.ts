/**
 * When the next scan begins: at a regular distance, sooner if a Python program has started or is old enough to be recorded.
 *
 *     scan ───────────── every 3 s ─────────────> scan
 *     scan ── start ── 1 s after the scan ──> scan       at most 5 in a row, then one in 6 s
 *
 * All starts between two scans cause one scan. A host that starts programs all the time is scanned about half as often
 * again as usual, because a hastened scan is paid from a credit that grows slowly.
 */
import type { Millis } from "../model/base/units.js";

const EVERY_MS: Millis = 3_000;
/** Between the begins of two scans. */
const LEAST_MS: Millis = 1_000;
/** A program that has just started has not loaded Python yet. */
const LOADING_MS: Millis = 500;
const MOST_CREDIT = 5;
const CREDIT_MS: Millis = 6_000;

interface ScanPaceOptions {
  /** Moves only forward. */
  readonly clock: () => Millis;
  /** Distance of scans without events; left out: {@link EVERY_MS}. */
  readonly everyMs?: Millis;
}

export class ScanPace {
  readonly #clock: () => Millis;
  readonly #everyMs: Millis;
  #begunMs: Millis;
  #dueMs: Millis;
  #credit = MOST_CREDIT;
  #creditedMs: Millis;
  #isHastened = false;
  #wake: () => void = () => {};

  constructor({ clock, everyMs = EVERY_MS }: ScanPaceOptions) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#begunMs = clock();
    this.#creditedMs = this.#begunMs;
    this.#dueMs = this.#begunMs + everyMs;
  }

  /** A scan begins now. */
  begin(): void {
    this.#begunMs = this.#clock();
    this.#dueMs = this.#begunMs + this.#everyMs;
    this.#isHastened = false;
  }

  /** A Python program has started; `afterMs`: a scan is wanted this much later. */
  hasten(afterMs: Millis = LOADING_MS): void {
    const nowMs = this.#clock();
    const dueMs = Math.max(nowMs + afterMs, this.#begunMs + LEAST_MS);
    if (dueMs >= this.#dueMs) {
      return; // the scan that comes sees this one, too
    }
    this.#credit = Math.min(MOST_CREDIT, this.#credit + (nowMs - this.#creditedMs) / CREDIT_MS);
    this.#creditedMs = nowMs;
    if (this.#isHastened || this.#credit >= 1) {
      this.#credit -= this.#isHastened ? 0 : 1;
      this.#dueMs = dueMs;
      this.#isHastened = true;
      this.#wake();
    }
  }

  /** How long until the next scan. */
  get leftMs(): Millis {
    return Math.max(0, this.#dueMs - this.#clock());
  }

  /** Resolves when the next scan is due, or `until` is aborted. */
  async next(until: AbortSignal): Promise<void> {
    while (!until.aborted && this.leftMs > 0) {
      // AbortSignal.any() would leave an entry on `until` for each wait.
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          until.removeEventListener("abort", wake);
          resolve();
        };
        const timer = setTimeout(wake, this.leftMs);
        until.addEventListener("abort", wake);
        this.#wake = wake;
      });
    }
    this.#wake = () => {};
  }
}
