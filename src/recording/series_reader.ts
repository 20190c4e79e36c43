import { float64At, uint8At, uint32At } from "../model/base/columns.js";
import type { MemorySeries, Metric } from "../model/profile/series.js";
import { demand } from "./batch_check.js";
import type { SeriesRow } from "./batches.js";
import { checkedMetrics } from "./checked_frames.js";

/** Assembles the rows of the `metrics` table: for each process, one column per metric and one row per poll. */
export class SeriesReader {
  readonly #columns: ProcessColumns[] = [];

  /** Throws BatchError for rows with an unknown process or metric. */
  add(value: unknown, processCount: number): void {
    const batch = checkedMetrics(value, processCount);
    for (let i = 0; i < batch.series.length; i++) {
      const columns = this.#columnsOf(uint32At(batch.series, i));
      const poll = pollAt(columns.timesMs, float64At(batch.timeMs, i));
      setAt(
        columns.values,
        batch.names[uint8At(batch.name, i)] as Metric,
        poll,
        float64At(batch.value, i),
      );
    }
  }

  /** In the order of `rows`; a process that was never polled has an empty series. */
  series(rows: readonly SeriesRow[]): MemorySeries[] {
    return rows.map(({ series, pid }) => {
      const { timesMs, values } = this.#columnsOf(series);
      const whole = new Map<Metric, Float64Array>();
      for (const [metric, column] of values) {
        const padded = new Float64Array(timesMs.length).fill(Number.NaN);
        padded.set(column);
        whole.set(metric, padded);
      }
      return { pid, timesMs: Float64Array.from(timesMs), values: whole };
    });
  }

  #columnsOf(series: number): ProcessColumns {
    this.#columns[series] ??= { timesMs: [], values: new Map() };
    return this.#columns[series];
  }
}

interface ProcessColumns {
  readonly timesMs: number[];
  /** A column ends with the metric's last reading; gaps hold NaN. */
  readonly values: Map<Metric, number[]>;
}

/** The row of the poll at `timeMs`; the rows of one poll are adjacent in the log. */
function pollAt(timesMs: number[], timeMs: number): number {
  const last = timesMs.at(-1);
  if (last !== timeMs) {
    demand(last === undefined || last < timeMs, "polls are out of order");
    timesMs.push(timeMs);
  }
  return timesMs.length - 1;
}

function setAt(values: Map<Metric, number[]>, metric: Metric, poll: number, value: number): void {
  let column = values.get(metric);
  if (!column) {
    column = [];
    values.set(metric, column);
  }
  while (column.length < poll) {
    column.push(Number.NaN);
  }
  column[poll] = value;
}
