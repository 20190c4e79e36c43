/** The frames of one stream as rows of the store's tables. */
import { float64At, itemAt, uint8At, uint32At } from "../../model/base/columns.js";
import type { TimeMs } from "../../model/base/units.js";
import type { EndBatch, MetaBatch, MetricBatch, SeriesRow } from "../../recording/batches.js";
import type { StreamItem } from "../../recording/stream_reader.js";
import { type Day, dayNamed, isOn } from "./days.js";
import type { SampleTarget } from "./sample_chunks.js";
import { SampleRows } from "./sample_rows.js";
import type { AddRow } from "./schema.js";
import { type AcceptLabel, identityIn, SeriesRows, whole } from "./series_rows.js";
import {
  type MarkReading,
  showsPeaks,
  UNREAD_PEAK,
  type UnreadPeak,
  UnreadPeaks,
} from "./unread_peaks.js";
import type { WrittenIds } from "./written_ids.js";

const WARNINGS: ReadonlySet<string> = new Set(["oom-kill", "limit"]);

/** The destinations of rows: those of one day, and those that belong to no day. */
export interface RowSink {
  readonly add: AddRow;
  readonly samples: SampleTarget;
}

/** The kind of the event that says how a recorded program ended. */
export const EXIT_EVENT = "exit";
const EXIT_CODE = /^exit code (\d+)$/;

/** null: its end was not seen. */
function exitText({ exitCode, signal }: EndBatch): string | null {
  return exitCode !== null ? `exit code ${exitCode}` : signal !== null ? `signal ${signal}` : null;
}

/** Of the text of such an event; null: a signal ended it. */
export function exitCodeIn(text: string): number | null {
  const [, code] = EXIT_CODE.exec(text) ?? [];
  return code === undefined ? null : Number(code);
}

/** The days that an item has rows for. */
export function daysOf(item: StreamItem): Day[] {
  switch (item.kind) {
    case "metrics":
      return daysNamed(item.batch.timeMs);
    case "events":
      return daysNamed(item.events.map(({ timeMs }) => timeMs));
    case "profile":
      return [dayNamed(item.profile.timeMs)];
    case "end":
      return exitText(item.end) === null ? [] : [dayNamed(item.end.timeMs)];
    default:
      return [];
  }
}

/** The earliest time from which an item changes readings, profiles or how long they are valid; null: it changes none. */
export function changedFromMs(item: StreamItem): TimeMs | null {
  switch (item.kind) {
    case "metrics":
      return least(item.batch.timeMs);
    case "profile":
      return item.profile.timeMs;
    case "end":
      return item.end.timeMs;
    case "processes": {
      const ends = item.rows.flatMap(({ endedMs }) => endedMs ?? []);
      return least(ends);
    }
    default:
      return null;
  }
}

function least(times: ArrayLike<TimeMs>): TimeMs | null {
  let found: TimeMs | null = null;
  for (let i = 0; i < times.length; i++) {
    found = Math.min(found ?? Number.POSITIVE_INFINITY, times[i] ?? 0);
  }
  return found;
}

function daysNamed(times: ArrayLike<TimeMs>): Day[] {
  const days: Day[] = [];
  let isOnLast = (_timeMs: TimeMs) => false;
  for (let i = 0; i < times.length; i++) {
    const timeMs = times[i] ?? 0;
    if (!isOnLast(timeMs)) {
      const day = dayNamed(timeMs);
      isOnLast = isOn(day);
      days.push(day);
    }
  }
  return [...new Set(days)];
}

/** The state of a stream so far; frames arrive in order. */
export class StreamRows {
  readonly #stream: string;
  #sink: RowSink;
  readonly #accepted: AcceptLabel;
  readonly #written: WrittenIds;
  #meta: MetaBatch | null = null;
  readonly #processes: SeriesRow[] = [];
  #series: SeriesRows | null = null;
  #samples: SampleRows | null = null;
  #peaks: UnreadPeaks | null = null;

  /** `written`: the dictionary rows that exist. */
  constructor(stream: string, sink: RowSink, accepted: AcceptLabel, written: WrittenIds) {
    this.#stream = stream;
    this.#sink = sink;
    this.#accepted = accepted;
    this.#written = written;
  }

  /** Known before the processes are: the series need the first of them. */
  get service(): string {
    return identityIn(this.#described()).service;
  }

  /** Rows of dictionaries that were written may have been removed. */
  forgetWritten(): void {
    this.#samples?.forgetWritten();
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
    const isOnDay = isOn(day);
    if (item.kind === "metrics") {
      this.#writeMetrics(item.batch, isOnDay);
    } else if (item.kind === "profile" && isOnDay(item.profile.timeMs)) {
      const rows = this.#sampleRows();
      // No later profile will contain the allocated bytes of the last one.
      if (item.about.kind === "end") {
        rows.addProfile(item.profile);
      } else {
        rows.addIfChanged(item.profile);
      }
    } else if (item.kind === "end") {
      this.#writeEnd(item.end, isOnDay);
    } else if (item.kind === "events") {
      for (const { timeMs, pid, kind, detail } of item.events) {
        if (isOnDay(timeMs)) {
          const severity = WARNINGS.has(kind) ? "warning" : "info";
          const id = this.#seriesRows().of(pid, timeMs);
          sink.add("events", id, whole(timeMs), kind, severity, detail);
        }
      }
    }
  }

  /** How the recorded program ended, if that was seen. */
  #writeEnd(end: EndBatch, isOnDay: (timeMs: TimeMs) => boolean): void {
    const text = exitText(end);
    const root = this.#processes[0];
    if (text !== null && root !== undefined && isOnDay(end.timeMs)) {
      this.#writePeaks(this.#unreadPeaks().atEnd(end));
      const id = this.#seriesRows().of(root.pid, root.startedMs);
      this.#sink.add("events", id, whole(end.timeMs), EXIT_EVENT, "info", text);
    }
  }

  #writeMetrics(
    { names, timeMs, series, name, value }: MetricBatch,
    isOnDay: (timeMs: TimeMs) => boolean,
  ): void {
    const rows = this.#seriesRows();
    const marks: MarkReading[] = [];
    for (let i = 0; i < series.length; i++) {
      const time = float64At(timeMs, i);
      const amount = float64At(value, i);
      const process = uint32At(series, i);
      const { pid, startedMs } = itemAt(this.#processes, process);
      if (Number.isFinite(amount) && isOnDay(time)) {
        const metric = itemAt(names, uint8At(name, i));
        this.#sink.add("metrics", rows.of(pid, startedMs), whole(time), metric, amount);
        if (showsPeaks(metric)) {
          marks.push({ process, startedMs, timeMs: time, metric, bytes: amount });
        }
      }
    }
    this.#writePeaks(this.#unreadPeaks().after(marks));
  }

  #unreadPeaks(): UnreadPeaks {
    this.#peaks ??= new UnreadPeaks(this.#described().startedMs);
    return this.#peaks;
  }

  #writePeaks(peaks: readonly UnreadPeak[]): void {
    const { rootId } = this.#seriesRows();
    for (const { timeMs, bytes } of peaks) {
      this.#sink.add("metrics", rootId, whole(timeMs), UNREAD_PEAK, bytes);
    }
  }

  #described(): MetaBatch {
    if (this.#meta === null) {
      throw new Error(`stream ${this.#stream} has rows before its description`);
    }
    return this.#meta;
  }

  #seriesRows(): SeriesRows {
    this.#series ??= new SeriesRows(
      { meta: { ...this.#described(), formatVersion: 0 }, processes: this.#processes },
      (...row) => this.#sink.add(...row),
      this.#stream,
      this.#accepted,
    );
    return this.#series;
  }

  #sampleRows(): SampleRows {
    const current = () => this.#sink.samples;
    const samples = {
      nextRow: () => current().nextRow(),
      get vectors() {
        return current().vectors;
      },
    };
    const add: AddRow = (...row) => this.#sink.add(...row);
    this.#samples ??= new SampleRows(this.#seriesRows(), add, samples, this.#written);
    return this.#samples;
  }
}
