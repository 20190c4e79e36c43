/** The frames of one stream as rows of the store's tables. */
import { float64At, itemAt, uint8At, uint32At } from "../../model/base/columns.js";
import type { TimeMs } from "../../model/base/units.js";
import type { MetaBatch, MetricBatch, SeriesRow } from "../../recording/batches.js";
import type { StreamItem } from "../../recording/stream_reader.js";
import { type Day, dayNamed } from "./database.js";
import type { SampleTarget } from "./sample_chunks.js";
import { SampleRows } from "./sample_rows.js";
import type { AddRow } from "./schema.js";
import { SeriesRows, whole } from "./series_rows.js";

const WARNINGS: ReadonlySet<string> = new Set(["oom-kill", "limit"]);

/** The destinations of rows: those of one day, and those that belong to no day. */
export interface RowSink {
  readonly add: AddRow;
  readonly samples: SampleTarget;
}

/** The days that an item has rows for. */
export function daysOf(item: StreamItem): Day[] {
  switch (item.kind) {
    case "metrics":
      return [...new Set(Array.from(item.batch.timeMs, dayNamed))];
    case "events":
      return [...new Set(item.events.map(({ timeMs }) => dayNamed(timeMs)))];
    case "profile":
      return [dayNamed(item.profile.timeMs)];
    default:
      return [];
  }
}

/** The state of a stream so far; frames arrive in order. */
export class StreamRows {
  readonly #stream: string;
  #sink: RowSink;
  #meta: MetaBatch | null = null;
  readonly #processes: SeriesRow[] = [];
  #series: SeriesRows | null = null;
  #samples: SampleRows | null = null;

  constructor(stream: string, sink: RowSink) {
    this.#stream = stream;
    this.#sink = sink;
  }

  /** Stores a stream's description of its processes. */
  describe(item: StreamItem, sink: RowSink): void {
    this.#sink = sink;
    if (item.kind === "meta") {
      this.#meta = item.meta;
    } else if (item.kind === "processes") {
      for (const row of item.rows) {
        this.#processes[row.series] = row;
      }
      for (const row of item.rows) {
        this.#seriesRows().changed(row.pid, row.startedMs, row);
      }
    } else if (item.kind === "end") {
      this.#end(item.end.timeMs);
    }
  }

  /** Ends the processes that were still running. */
  #end(timeMs: TimeMs): void {
    this.#processes.forEach((row, index) => {
      if (row.endedMs === null) {
        const ended = { ...row, endedMs: timeMs };
        this.#processes[index] = ended;
        this.#seriesRows().changed(row.pid, row.startedMs, ended);
      }
    });
  }

  /** Writes the item's rows of one day. */
  write(item: StreamItem, day: Day, sink: RowSink): void {
    this.#sink = sink;
    if (item.kind === "metrics") {
      this.#writeMetrics(item.batch, day);
    } else if (item.kind === "profile" && dayNamed(item.profile.timeMs) === day) {
      this.#sampleRows().addIfChanged(item.profile);
    } else if (item.kind === "events") {
      for (const { timeMs, pid, kind, detail } of item.events) {
        if (dayNamed(timeMs) === day) {
          const severity = WARNINGS.has(kind) ? "warning" : "info";
          const id = this.#seriesRows().of(pid, timeMs);
          sink.add("events", id, whole(timeMs), kind, severity, detail);
        }
      }
    }
  }

  #writeMetrics({ names, timeMs, series, name, value }: MetricBatch, day: Day): void {
    const rows = this.#seriesRows();
    for (let i = 0; i < series.length; i++) {
      const time = float64At(timeMs, i);
      const amount = float64At(value, i);
      const { pid, startedMs } = itemAt(this.#processes, uint32At(series, i));
      if (Number.isFinite(amount) && dayNamed(time) === day) {
        const metric = itemAt(names, uint8At(name, i));
        this.#sink.add("metrics", rows.of(pid, startedMs), whole(time), metric, amount);
      }
    }
  }

  #seriesRows(): SeriesRows {
    const meta = this.#meta;
    if (meta === null) {
      throw new Error(`stream ${this.#stream} has rows before its description`);
    }
    this.#series ??= new SeriesRows(
      { meta: { ...meta, formatVersion: 0 }, processes: this.#processes },
      (...row) => this.#sink.add(...row),
      this.#stream,
    );
    return this.#series;
  }

  #sampleRows(): SampleRows {
    const current = () => this.#sink.samples;
    this.#samples ??= new SampleRows(this.#seriesRows(), (...row) => this.#sink.add(...row), {
      nextRow: () => current().nextRow(),
      get vectors() {
        return current().vectors;
      },
    });
    return this.#samples;
  }
}
