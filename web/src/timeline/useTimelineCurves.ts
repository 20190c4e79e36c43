/** The timeline's data from a report: curves, events, and the covered time. */
import { useMemo } from "react";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import type { TimelineEvent } from "../../../src/model/profile/series.js";
import { formatBytes } from "../format/numbers.js";
import { type DeviceCurves, deviceCurves } from "./deviceCurves.js";
import { type Curves, type LiveCurves, liveCurves, memoryCurves } from "./timelineData.js";

export interface TimelineCurves {
  readonly memory: Curves;
  /** null if no process has device readings. */
  readonly device: DeviceCurves | null;
  readonly live: LiveCurves;
}

/** From and to, seconds since 1970. */
export type TimeRange = readonly [number, number];

/** `pid` null: all processes. */
export function useTimelineCurves(report: ReportDocument, pid: number | null) {
  const memory = useMemo(() => memoryCurves(report, pid), [report, pid]);
  const device = useMemo(() => deviceCurves(report, pid, memory.times), [report, pid, memory]);
  const live = useMemo(() => {
    const known = !isUnknown(report.summary.imported, "live");
    return liveCurves(report.tables, known ? report.snapshots : [], pid);
  }, [report, pid]);
  const events = useMemo(() => eventsOf(report, pid), [report, pid]);
  const extent = useMemo(() => timeExtent(report, memory.times), [report, memory]);
  const curves: TimelineCurves = useMemo(() => ({ memory, device, live }), [memory, device, live]);
  return { curves, events, extent };
}

function timeExtent(report: ReportDocument, times: readonly number[]): TimeRange {
  const { startMs, endMs } = report.summary.window;
  const from = Math.min(startMs / 1000, times[0] ?? Number.POSITIVE_INFINITY);
  const to = Math.max(endMs / 1000, times.at(-1) ?? 0);
  return to > from ? [from, to] : [from, from + 1];
}

function eventsOf(report: ReportDocument, pid: number | null): TimelineEvent[] {
  const kept = report.events.filter((event) => pid === null || event.pid === pid);
  const { peakMs, peakAfterMs, peakBytes } = report.summary.rss;
  const hasPeak = kept.some((event) => event.kind === "peak");
  if (pid === null && !hasPeak && peakBytes > 0 && peakAfterMs === undefined) {
    kept.push({
      timeMs: peakMs,
      pid: report.summary.target.pid,
      kind: "peak",
      detail: formatBytes(peakBytes),
    });
  }
  return kept.sort((a, b) => a.timeMs - b.timeMs);
}
