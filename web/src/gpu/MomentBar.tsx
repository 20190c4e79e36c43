/** The scrubber below a timeline: the moment as text, and buttons for important moments. */

import type { ReactNode } from "react";
import { float64At } from "../../../src/model/base/columns.js";
import type { GpuDeviceJson } from "../../../src/model/documents/gpu/gpu_document.js";
import type { GpuPageDevice } from "../../../src/model/documents/gpu/gpu_page.js";
import { formatBytes, formatCount } from "../format/numbers.js";

/** More buttons would push the page down; the timeline marks all of them. */
const MOST_BUTTONS = 6;

interface Props {
  device: GpuPageDevice;
  summary: GpuDeviceJson;
  moment: number;
  onMoment(moment: number): void;
  children?: ReactNode;
}

export function MomentBar({ device: { replay }, summary, moment, onMoment, children }: Props) {
  const { outOfMemory } = summary;
  return (
    <div className="gpu-scrubber">
      <input
        type="range"
        aria-label="Moment of the trace"
        min={0}
        max={replay.events}
        value={moment}
        onChange={(event) => onMoment(Number(event.target.value))}
      />
      <output>
        event {formatCount(moment)} of {formatCount(replay.events)}:{" "}
        {formatBytes(float64At(replay.requested, moment))} requested,{" "}
        {formatBytes(float64At(replay.reserved, moment))} reserved
      </output>
      <button type="button" className="button" onClick={() => onMoment(summary.peak.eventIndex)}>
        Peak
      </button>
      {outOfMemory.slice(0, MOST_BUTTONS).map(({ eventIndex }, row) => (
        <button
          type="button"
          className="button"
          key={eventIndex}
          onClick={() => onMoment(eventIndex)}
        >
          Out of memory{outOfMemory.length > 1 ? ` ${row + 1}` : ""}
        </button>
      ))}
      <button type="button" className="button" onClick={() => onMoment(replay.events)}>
        End
      </button>
      {children}
    </div>
  );
}
