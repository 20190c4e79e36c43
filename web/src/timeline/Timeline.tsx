/** Memory over time: RSS, PSS and device memory above, live bytes by allocator below, on one time axis. */
import { useState } from "react";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import { noLiveCourse, noReadings } from "../format/absent.js";
import { formatBytes } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { TimelineReadout } from "./TimelineReadout.js";
import { hasLive, useTimelineCharts } from "./useTimelineCharts.js";
import { type TimelineCurves, type TimeRange, useTimelineCurves } from "./useTimelineCurves.js";

interface TimelineProps {
  report: ReportDocument;
  theme: Theme;
  pid: number | null;
  atMs: number | null;
  baseMs: number | null;
  /** A click selects the figures of this time. */
  onTime(timeMs: number): void;
  /** A drag selects the change between two times. */
  onWindow(fromMs: number, toMs: number): void;
}

export function Timeline({ report, theme, pid, atMs, baseMs, onTime, onWindow }: TimelineProps) {
  const { curves, events, extent } = useTimelineCurves(report, pid);
  const { memory, live } = curves;
  const [zoom, setZoom] = useState<TimeRange | null>(null);
  const [pointerMs, setPointerMs] = useState<number | null>(null);
  const { startMs } = report.summary.window;
  const inSight = zoom ?? extent;
  const snapshotTimesMs = report.snapshots.map((snapshot) => snapshot.timeMs);
  const { top, bottom } = useTimelineCharts({
    curves,
    marks: { startMs, events, snapshotTimesMs, atMs, baseMs },
    actions: { onTime, onWindow },
    theme,
    inSight,
    onPointer: setPointerMs,
  });
  const hasPss = pssKnown(curves);

  if (memory.times.length === 0) {
    return <p className="empty">{noReadings(report.summary.imported)}</p>;
  }
  const chosen = baseMs !== null && atMs !== null && baseMs !== atMs;
  return (
    <figure className="timeline" aria-label="Memory over time">
      <figcaption className="timeline-legend">
        <Keys curves={curves} imported={report.summary.imported} />
        <span className="timeline-readout" aria-live="off">
          {pointerMs !== null && (
            <TimelineReadout
              timeMs={pointerMs}
              startMs={startMs}
              curves={curves}
              events={events}
              span={inSight[1] - inSight[0]}
            />
          )}
        </span>
        {chosen && (
          <button type="button" className="quiet" onClick={() => setZoom(windowOf(baseMs, atMs))}>
            Zoom to window
          </button>
        )}
        {zoom && (
          <button type="button" className="quiet" onClick={() => setZoom(null)}>
            Whole run
          </button>
        )}
      </figcaption>
      <div
        ref={top}
        className="chart"
        data-testid="memory-chart"
        role="img"
        aria-label={`${memory.name}${hasPss ? " and PSS" : ""} over time, ${report.summary.processes.length} processes`}
      />
      {hasLive(curves) ? (
        <div
          ref={bottom}
          className="chart"
          data-testid="live-chart"
          role="img"
          aria-label={`Live bytes by allocator over time, up to ${formatBytes(live.total)}`}
        />
      ) : (
        memory.name === "RSS" && <p className="empty">{noLiveCourse(report.summary.imported)}</p>
      )}
    </figure>
  );
}

function Keys({ curves, imported }: { curves: TimelineCurves; imported: SummaryJson["imported"] }) {
  const { device, memory } = curves;
  const live = hasLive(curves);
  const knowsAllocators = !isUnknown(imported, "python");
  return (
    <>
      <span className="key key-rss">{memory.name}</span>
      {memory.name !== "RSS" ? null : pssKnown(curves) ? (
        <span className="key key-pss">PSS</span>
      ) : (
        <span className="missing">{imported ? "PSS unknown" : "PSS could not be read"}</span>
      )}
      {device && <span className="timeline-divider">device</span>}
      {device && <span className="key key-reserved">reserved</span>}
      {device && <span className="key key-allocated">allocated</span>}
      {live && <span className="timeline-divider">live bytes</span>}
      {live && knowsAllocators && <span className="key key-python">Python</span>}
      {live && (
        <span className="key key-native">{knowsAllocators ? "native" : "unknown allocator"}</span>
      )}
      {live && <span className="key key-mapped">mapped</span>}
    </>
  );
}

function pssKnown({ memory }: TimelineCurves): boolean {
  return memory.pss.some((value) => value !== null);
}

/** Two times with a margin, in the order of time. */
function windowOf(a: number, b: number): TimeRange {
  const [from, to] = [Math.min(a, b) / 1000, Math.max(a, b) / 1000];
  const margin = (to - from) * 0.05;
  return [from - margin, to + margin];
}
