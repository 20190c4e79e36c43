/**
 * Whether open files, sockets, threads or mappings of the recorded program become more, or memory that its libraries
 * take past malloc: its objects for all of them are too few and too small for samples, so that no site tells of them.
 */

import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { ledgerMetric, type Metric } from "../../model/profile/series.js";
import type { MetricRow } from "../../recording/writer.js";

export const ANON_OTHER = ledgerMetric("anon.other");
export const LEAST_UNKNOWN_RISE: Bytes = 4_000_000;
/** How much more makes a look at the program's objects worth its time. */
const LEAST_RISE: Partial<Readonly<Record<Metric, number>>> = {
  openFiles: 15,
  openSockets: 15,
  threads: 15,
  fileRssBytes: 4_000_000,
  shmemRssBytes: 4_000_000,
  [ANON_OTHER]: LEAST_UNKNOWN_RISE,
};
/** Ledgers are seconds apart: the first is from after most starts, and a later one from late in a short run. */
const FROM_THE_FIRST: ReadonlySet<Metric> = new Set([ANON_OTHER]);
/** Descriptors are counted at each poll, those of them that are sockets seldom: two counts tell whether they grow. */
const FEWEST_COUNTS = 2;
/** The recorded program's own series. */
const ROOT_SERIES = 0;

export class UnsampledGrowth {
  readonly #first = new Map<Metric, number>();
  readonly #grown = new Set<Metric>();
  #socketCounts = 0;

  readonly #startMs: TimeMs;
  readonly #settledMs: Millis;

  /** What is there before `settledMs` after the start is no growth; of a ledger, what is there at the first. */
  constructor(startMs: TimeMs, settledMs: Millis) {
    this.#startMs = startMs;
    this.#settledMs = settledMs;
  }

  /** The figures that have risen by so much, and have not gone back. Of descriptors that become more any may be
   * sockets, as long as nobody can tell. */
  get growing(): ReadonlySet<Metric> {
    const untold = this.#grown.has("openFiles") && this.#socketCounts < FEWEST_COUNTS;
    return untold ? new Set<Metric>([...this.#grown, "openSockets"]) : this.#grown;
  }

  polled(rows: readonly MetricRow[]): void {
    for (const { series, metric, value, timeMs } of rows) {
      const least = LEAST_RISE[metric];
      const settled = timeMs >= this.#startMs + this.#settledMs || FROM_THE_FIRST.has(metric);
      if (least === undefined || series !== ROOT_SERIES || !settled) {
        continue;
      }
      this.#socketCounts += metric === "openSockets" ? 1 : 0;
      const first = this.#first.get(metric) ?? value;
      this.#first.set(metric, Math.min(first, value));
      if (value >= first + least) {
        this.#grown.add(metric);
      } else {
        this.#grown.delete(metric);
      }
    }
  }
}
