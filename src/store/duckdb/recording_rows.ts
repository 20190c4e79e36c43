/** A recording as rows of the store's tables. */

import { float64At } from "../../model/base/columns.js";
import type { OnProgress } from "../../model/base/units.js";
import type { MemorySeries } from "../../model/profile/series.js";
import type { Recording } from "../../recording/types.js";
import type { SampleChunks } from "./sample_chunks.js";
import { SampleRows } from "./sample_rows.js";
import type { AddRow } from "./schema.js";
import { SeriesRows, whole } from "./series_rows.js";
import { type MarkReading, showsPeaks, UNREAD_PEAK, UnreadPeaks } from "./unread_peaks.js";
import { WrittenIds } from "./written_ids.js";

const WARNINGS: ReadonlySet<string> = new Set(["oom-kill", "limit"]);

/** Passes every row of the recording to `add`, and samples to `chunks`; at most two consecutive profiles are in memory.
`onProgress` counts profiles. */
export async function addRecording(
  recording: Recording,
  add: AddRow,
  chunks: SampleChunks,
  onProgress: OnProgress,
): Promise<void> {
  const series = new SeriesRows(recording, add);
  for (const one of recording.series) {
    addMetrics(one, series, add);
  }
  const peaks = new UnreadPeaks(recording.meta.startedMs);
  const end = recording.end === null ? [] : [recording.end];
  for (const { timeMs, bytes } of [
    ...peaks.after(marksOf(recording)),
    ...end.flatMap((each) => peaks.atEnd(each)),
  ]) {
    add("metrics", series.rootId, whole(timeMs), UNREAD_PEAK, bytes);
  }
  for (const event of recording.events) {
    const severity = WARNINGS.has(event.kind) ? "warning" : "info";
    add(
      "events",
      series.of(event.pid, event.timeMs),
      whole(event.timeMs),
      event.kind,
      severity,
      event.detail,
    );
  }
  const samples = new SampleRows(series, add, chunks, new WrittenIds());
  for (const index of recording.snapshots.keys()) {
    samples.addProfile(recording.profileOf(index));
    await onProgress(index + 1, recording.snapshots.length);
  }
}

function addMetrics(series: MemorySeries, rows: SeriesRows, add: AddRow): void {
  const { timesMs, values } = series;
  if (timesMs.length === 0) {
    return;
  }
  const id = rows.of(series.pid, float64At(timesMs, 0));
  for (const [name, column] of values) {
    for (let row = 0; row < timesMs.length; row++) {
      if (!Number.isNaN(float64At(column, row))) {
        add("metrics", id, whole(float64At(timesMs, row)), name, float64At(column, row));
      }
    }
  }
}

/** In the order in which they were read. */
function marksOf({ series, processes, meta }: Recording): MarkReading[] {
  return series
    .flatMap(({ timesMs, values }, process) =>
      [...values].flatMap(([metric, column]) =>
        showsPeaks(metric)
          ? Array.from(column, (bytes, row) => ({
              ...{ process, metric, bytes, timeMs: float64At(timesMs, row) },
              startedMs: processes[process]?.startedMs ?? meta.startedMs,
            }))
          : [],
      ),
    )
    .filter(({ bytes }) => !Number.isNaN(bytes))
    .sort((a, b) => a.timeMs - b.timeMs);
}
