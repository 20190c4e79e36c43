/** Overlays of the timeline: the scale, the peak, out-of-memory moments, and the compared moments. */
import type { GpuDeviceJson } from "../../../../src/model/documents/gpu/gpu_document.js";
import { formatBytes } from "../../format/numbers.js";

interface Props {
  summary: GpuDeviceJson;
  moment: number;
  /** The moment it is compared with; null without a comparison. */
  base: number | null;
  /** CSS pixels from the left edge. */
  columnOf(moment: number): number;
  width: number;
  top: number;
}

export function TimelineMarks({ summary, moment, base, columnOf, width, top }: Props) {
  return (
    <>
      {gridLines(top).map((bytes) => (
        <div
          key={bytes}
          className="gpu-grid"
          style={{ bottom: `${(100 * bytes) / top}%` }}
          aria-hidden="true"
        >
          <span>{formatBytes(bytes)}</span>
        </div>
      ))}
      <Mark at={columnOf(summary.peak.eventIndex)} width={width} kind="peak" label="peak" />
      {summary.outOfMemory.map(({ eventIndex }) => (
        <Mark
          key={eventIndex}
          at={columnOf(eventIndex)}
          width={width}
          kind="oom"
          label="out of memory"
        />
      ))}
      {base !== null && <Mark at={columnOf(base)} width={width} kind="now" label="A" />}
      <Mark at={columnOf(moment)} width={width} kind="now" label={base === null ? "" : "B"} />
    </>
  );
}

/** Two to four round values below the upper edge. */
function gridLines(top: number): number[] {
  let step = 2 ** Math.floor(Math.log2(top / 2));
  if (top / step < 2.5) {
    step /= 2;
  }
  return Array.from({ length: Math.ceil(top / step) - 1 }, (_, line) => (line + 1) * step).filter(
    (bytes) => bytes < top * 0.97,
  );
}

function Mark({
  at,
  width,
  kind,
  label,
}: {
  at: number;
  width: number;
  kind: string;
  label: string;
}) {
  if (!(at >= 0 && at <= width)) {
    return null;
  }
  return (
    <div className={`gpu-mark gpu-mark-${kind}`} style={{ left: at }}>
      <span className={at > width - 90 ? "left" : ""}>{label}</span>
    </div>
  );
}
