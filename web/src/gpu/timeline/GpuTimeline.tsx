/** Every allocation over the trace; a click selects the moment, the wheel zooms, dragging pans. */
import { float64At } from "../../../../src/model/base/columns.js";
import type { GpuDeviceJson } from "../../../../src/model/documents/gpu/gpu_document.js";
import { formatBytes } from "../../format/numbers.js";
import { useWidth } from "../../widgets/useWidth.js";
import { TimelineMarks } from "./TimelineMarks.js";
import { type Pictured, usePicture } from "./usePicture.js";
import { usePointer, useWheelZoom } from "./usePointer.js";
import { type MomentRange, useRange } from "./useRange.js";

interface GpuTimelineProps extends Pictured {
  summary: GpuDeviceJson;
  moment: number;
  base: number | null;
  onMoment(moment: number): void;
  onChoose(allocation: number): void;
}

export function GpuTimeline(props: GpuTimelineProps) {
  const { device, summary, height, top, moment, base, onMoment } = props;
  const { replay } = device;
  const [holder, width] = useWidth();
  const range = useRange(replay.events);
  const { from, to } = range;
  const { canvas, view, rowUnder } = usePicture(props, { width, from, to });
  const { hover, listeners } = usePointer({
    range,
    width,
    rowUnder,
    onPress: ({ at, row }) => {
      onMoment(at);
      props.onChoose(row);
    },
  });
  useWheelZoom(canvas, range);
  // If the chosen moment is visible, it keeps its position.
  const chosenShare = moment >= from && moment <= to ? (moment - from) / (to - from) : 0.5;
  return (
    <div className="gpu-timeline" ref={holder}>
      <canvas
        ref={canvas}
        width={view.width}
        height={view.height}
        style={{ width, height }}
        tabIndex={0}
        role="slider"
        aria-label="Moment"
        aria-valuemin={0}
        aria-valuemax={replay.events}
        aria-valuenow={moment}
        onKeyDown={(event) => {
          const step = event.shiftKey ? 100 : 1;
          if (event.key === "ArrowLeft") {
            onMoment(Math.max(0, moment - step));
          } else if (event.key === "ArrowRight") {
            onMoment(Math.min(replay.events, moment + step));
          } else if (event.key === "+") {
            range.zoom(0.5, chosenShare);
          } else if (event.key === "-") {
            range.zoom(2, chosenShare);
          } else {
            return;
          }
          event.preventDefault();
        }}
        onDoubleClick={range.all}
        {...listeners}
      />
      <TimelineMarks
        summary={summary}
        moment={moment}
        base={base}
        columnOf={(at) => ((at - from) / (to - from)) * width}
        width={width}
        top={top}
      />
      {hover !== null && hover.row >= 0 && (
        <div
          className="gpu-tip"
          style={{ left: Math.min(hover.x + 12, width - 130), top: Math.max(0, hover.y - 34) }}
        >
          {formatBytes(float64At(replay.allocations.size, hover.row))}
        </div>
      )}
      <ZoomButtons range={range} share={chosenShare} />
    </div>
  );
}

/** `share`: the fixed point, as a share of the width from the left edge. */
function ZoomButtons({ range, share }: { range: MomentRange; share: number }) {
  return (
    <div className="gpu-zoom">
      <button
        type="button"
        className="button"
        aria-label="Zoom in"
        onClick={() => range.zoom(0.5, share)}
      >
        +
      </button>
      <button
        type="button"
        className="button"
        aria-label="Zoom out"
        onClick={() => range.zoom(2, share)}
      >
        −
      </button>
      <button type="button" className="button" onClick={range.all}>
        All
      </button>
    </div>
  );
}
