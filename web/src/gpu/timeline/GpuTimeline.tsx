/** Every allocation over the trace; a click chooses the moment, the wheel zooms, dragging moves. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { GpuDeviceJson } from "../../../../src/model/gpu_document.js";
import type { GpuPageDevice } from "../../../../src/model/gpu_page.js";
import { formatBytes } from "../../format/numbers.js";
import { useWidth } from "../../widgets/useWidth.js";
import { colourOf, type GpuPalette } from "../colours/gpuColours.js";
import { TimelineMarks } from "./TimelineMarks.js";
import {
  allocationAt,
  coloursOf,
  columnMoments,
  drawAllocations,
  type TimelineView,
} from "./timelineLayout.js";
import type { DeviceShape } from "./useDeviceShape.js";
import { useRange } from "./useRange.js";

/** Beyond so many columns a finer screen's own pixels are not worth their time. */
const MOST_COLUMNS = 1600;

interface Props {
  device: GpuPageDevice;
  shape: DeviceShape;
  summary: GpuDeviceJson;
  palette: GpuPalette;
  /** CSS pixels. */
  height: number;
  /** Bytes at the upper edge. */
  top: number;
  moment: number;
  base: number | null;
  /** By stack: false where the search leaves it out; null without a search. */
  found: Uint8Array | null;
  onMoment(moment: number): void;
  onChoose(allocation: number): void;
}

export function GpuTimeline(props: Props) {
  const { device, shape, summary, palette, height, top, moment, base, found } = props;
  const { onMoment, onChoose } = props;
  const { replay, category } = device;
  const [holder, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const range = useRange(replay.events);
  const { from, to } = range;
  const [hover, setHover] = useState<{ x: number; y: number; row: number } | null>(null);
  const drag = useRef<{ x: number; from: number; moved: boolean } | null>(null);
  const finer = width * devicePixelRatio <= MOST_COLUMNS ? Math.min(2, devicePixelRatio) : 1;
  const view: TimelineView = useMemo(
    () => ({
      from,
      to,
      width: Math.max(1, Math.round(width * finer)),
      height: Math.round(height * finer),
      top,
    }),
    [from, to, width, finer, height, top],
  );
  const moments = useMemo(() => columnMoments(shape.heights, view), [shape, view]);
  const colours = useMemo(() => {
    const { stack } = replay.allocations;
    return coloursOf(shape.stacked, (row) =>
      found === null
        ? palette.pixels[colourOf(category[row]!, stack[row]!)]!
        : found[stack[row]!] === 1
          ? palette.match
          : palette.faded,
    );
  }, [replay, shape, category, palette, found]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) return;
    const startedMs = performance.now();
    const image = context.createImageData(view.width, view.height);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(palette.background);
    drawAllocations(shape.stacked, colours, moments, view, pixels);
    context.putImageData(image, 0, 0);
    // Read by the bench: what a picture cost.
    context.canvas.dataset.drawMs = (performance.now() - startedMs).toFixed(2);
  }, [shape, colours, moments, view, palette, width]);

  const columnOf = (at: number) => ((at - from) / (to - from)) * width;
  // Where the chosen moment is in sight it stays where it is.
  const chosenShare = moment >= from && moment <= to ? (moment - from) / (to - from) : 0.5;
  const under = (event: React.PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = Math.max(0, Math.min(width - 1, event.clientX - box.left));
    const y = event.clientY - box.top;
    const at = moments[Math.min(moments.length - 1, Math.floor(x * finer))] ?? 0;
    return { x, y, at, row: allocationAt(shape.stacked, at, (1 - y / height) * top) };
  };
  useEffect(() => {
    const node = canvas.current;
    if (!node) return;
    // React's own listener may not keep the page from scrolling.
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = node.getBoundingClientRect();
      const share = (event.clientX - box.left) / Math.max(1, box.width);
      range.zoom(event.deltaY > 0 ? 1.25 : 0.8, share);
    };
    node.addEventListener("wheel", wheel, { passive: false });
    return () => node.removeEventListener("wheel", wheel);
  });

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
          if (event.key === "ArrowLeft") onMoment(Math.max(0, moment - step));
          else if (event.key === "ArrowRight") onMoment(Math.min(replay.events, moment + step));
          else if (event.key === "+") range.zoom(0.5, chosenShare);
          else if (event.key === "-") range.zoom(2, chosenShare);
          else return;
          event.preventDefault();
        }}
        onDoubleClick={range.all}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.clientX, from, moved: false };
        }}
        onPointerMove={(event) => {
          const held = drag.current;
          if (held === null) {
            setHover(under(event));
          } else if (held.moved || Math.abs(event.clientX - held.x) > 3) {
            held.moved = true;
            setHover(null);
            range.move(held.from - ((event.clientX - held.x) / width) * (to - from));
          }
        }}
        onPointerCancel={() => {
          drag.current = null;
        }}
        onPointerLeave={() => setHover(null)}
        onPointerUp={(event) => {
          const held = drag.current;
          drag.current = null;
          if (held === null || held.moved) return;
          const { at, row } = under(event);
          onMoment(at);
          onChoose(row);
        }}
      />
      <TimelineMarks
        summary={summary}
        moment={moment}
        base={base}
        columnOf={columnOf}
        width={width}
        top={top}
      />
      {hover !== null && hover.row >= 0 && (
        <div
          className="gpu-tip"
          style={{ left: Math.min(hover.x + 12, width - 130), top: Math.max(0, hover.y - 34) }}
        >
          {formatBytes(replay.allocations.size[hover.row]!)}
        </div>
      )}
      <div className="gpu-zoom">
        <button
          type="button"
          className="button"
          aria-label="Zoom in"
          onClick={() => range.zoom(0.5, chosenShare)}
        >
          +
        </button>
        <button
          type="button"
          className="button"
          aria-label="Zoom out"
          onClick={() => range.zoom(2, chosenShare)}
        >
          −
        </button>
        <button type="button" className="button" onClick={range.all}>
          All
        </button>
      </div>
    </div>
  );
}
