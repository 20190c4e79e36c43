/**
 * Whether open files, sockets, threads or mappings of the recorded program become more: its objects for them
 * are too few and too small for samples, so that no site tells of them.
 */
import type { Metric } from "../model/series.js";
import type { Millis, TimeMs } from "../model/units.js";
import type { MetricRow } from "./writer.js";

/** How much more makes a look at the program's objects worth its time. */
const LEAST_RISE: Partial<Readonly<Record<Metric, number>>> = {
  openFiles: 15,
  openSockets: 15,
  threads: 15,
  fileRssBytes: 4_000_000,
  shmemRssBytes: 4_000_000,
};
/** The recorded program's own series. */
const ROOT_SERIES = 0;

export class HandleGrowth {
  private readonly first = new Map<Metric, number>();
  private readonly grown = new Set<Metric>();

  /** What is there before `settledMs` after the start is no growth. */
  constructor(
    private readonly startMs: TimeMs,
    private readonly settledMs: Millis,
  ) {}

  /** The figures that have risen by so much. */
  get growing(): ReadonlySet<Metric> {
    return this.grown;
  }

  polled(rows: readonly MetricRow[]): void {
    for (const { series, metric, value, timeMs } of rows) {
      const least = LEAST_RISE[metric];
      if (least === undefined || series !== ROOT_SERIES || timeMs < this.startMs + this.settledMs) {
        continue;
      }
      const first = this.first.get(metric) ?? value;
      this.first.set(metric, Math.min(first, value));
      if (value >= first + least) {
        this.grown.add(metric);
      }
    }
  }
}
