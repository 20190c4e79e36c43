/**
 * Whether the number of open files, sockets, threads, ended children or mappings of the recorded program grows, or memory that
 * its libraries allocate without malloc. The objects for these are too few and too small to be sampled, so
 * sites do not show them.
 */

import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { ledgerMetric, type Metric } from "../../model/profile/series.js";
import type { MetricRow } from "../../recording/writer.js";

export const ANON_OTHER = ledgerMetric("anon.other");
export const LEAST_UNKNOWN_RISE: Bytes = 4_000_000;
/** Least growth that justifies a lookup of the program's objects. */
const LEAST_RISE: Partial<Readonly<Record<Metric, number>>> = {
  openFiles: 15,
  openSockets: 15,
  threads: 15,
  endedChildren: 15,
  fileRssBytes: 4_000_000,
  shmemRssBytes: 4_000_000,
  [ANON_OTHER]: LEAST_UNKNOWN_RISE,
};
/** Ledgers are seconds apart: the first usually comes after start-up, and a later one late in a short run. */
const FROM_THE_FIRST: ReadonlySet<Metric> = new Set([ANON_OTHER]);
/** Descriptors are counted at each poll, but sockets only rarely; two counts show whether they grow. */
const FEWEST_COUNTS = 2;
/** The recorded program's own series. */
const ROOT_SERIES = 0;

export class UnsampledGrowth {
  readonly #first = new Map<Metric, number>();
  readonly #grown = new Set<Metric>();
  #socketCounts = 0;

  readonly #startMs: TimeMs;
  readonly #settledMs: Millis;

  /** Values before `settledMs` after the start are not growth; for a ledger, values at the first one. */
  constructor(startMs: TimeMs, settledMs: Millis) {
    this.#startMs = startMs;
    this.#settledMs = settledMs;
  }

  /**
   * The metrics that have risen by that much and have not fallen. If descriptors grow, any of them may be
   * sockets as long as that is unknown.
   */
  get growing(): ReadonlySet<Metric> {
    const areSocketsUnknown = this.#grown.has("openFiles") && this.#socketCounts < FEWEST_COUNTS;
    return areSocketsUnknown ? new Set<Metric>([...this.#grown, "openSockets"]) : this.#grown;
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
