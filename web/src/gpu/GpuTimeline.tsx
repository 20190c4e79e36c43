/** Every allocation over the trace; a click chooses the moment, the wheel zooms, dragging moves. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { GpuDeviceJson } from "../../../src/model/gpu_document.js";
import type { GpuPageDevice } from "../../../src/model/gpu_page.js";
import { formatBytes } from "../page/format.js";
import { colourOf, type GpuPalette } from "./gpuColours.js";
import {
  allocationAt,
  columnMoments,
  drawAllocations,
  stackingOrder,
  type TimelineView,
} from "./timelineLayout.js";
import { useWidth } from "./useWidth.js";

const HEIGHT = 300;
const FEWEST_MOMENTS = 12;

interface Props {
  device: GpuPageDevice;
  summary: GpuDeviceJson;
  palette: GpuPalette;
  moment: number;
  chosen: number;
  /** By stack: false where the search leaves it out; null without a search. */
  found: Uint8Array | null;
  onMoment(moment: number): void;
  onChoose(allocation: number): void;
}

export function GpuTimeline({
  device,
  summary,
  palette,
  moment,
  chosen,
  found,
  onMoment,
  onChoose,
}: Props) {
  const { replay, category } = device;
  const [holder, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [range, setRange] = useState<[number, number]>([0, replay.events + 1]);
  const [hover, setHover] = useState<{ x: number; y: number; row: number } | null>(null);
  const drag = useRef<{ x: number; range: [number, number]; moved: boolean } | null>(null);
  useEffect(() => setRange([0, replay.events + 1]), [replay]);
  const order = useMemo(() => stackingOrder(replay.allocations), [replay]);
  const top = useMemo(() => {
    let highest = 1;
    for (const value of replay.requested) highest = Math.max(highest, value);
    return highest * 1.04;
  }, [replay]);
  const view: TimelineView = useMemo(
    () => ({ from: range[0], to: range[1], width, height: HEIGHT, top }),
    [range, width, top],
  );
  const moments = useMemo(() => columnMoments(replay, view), [replay, view]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) return;
    const image = context.createImageData(width, HEIGHT);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(palette.background);
    const { stack } = replay.allocations;
    const colour = (row: number) =>
      found !== null && found[stack[row]!] === 0
        ? palette.faded
        : palette.pixels[colourOf(category[row]!, stack[row]!)]!;
    drawAllocations(replay.allocations, order, moments, view, colour, pixels);
    context.putImageData(image, 0, 0);
  }, [replay, category, order, moments, view, palette, found, width]);

  const columnOf = (at: number) => ((at - range[0]) / (range[1] - range[0])) * width;
  const under = (event: React.PointerEvent | React.MouseEvent) => {
    const box = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    const x = Math.max(0, Math.min(width - 1, Math.floor(event.clientX - box.left)));
    const y = event.clientY - box.top;
    const at = moments[x] ?? 0;
    const bytes = ((HEIGHT - y) / HEIGHT) * top;
    return { x, y, at, row: allocationAt(replay.allocations, order, at, bytes) };
  };
  const zoom = (factor: number, around: number) => {
    const [from, to] = range;
    const span = Math.max(FEWEST_MOMENTS, Math.min(replay.events + 1, (to - from) * factor));
    const share = (around - from) / (to - from);
    const left = Math.max(0, Math.min(replay.events + 1 - span, around - share * span));
    setRange([left, left + span]);
  };
  useEffect(() => {
    const node = canvas.current;
    if (!node) return;
    // React's own listener may not keep the page from scrolling.
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = node.getBoundingClientRect();
      const share = (event.clientX - box.left) / Math.max(1, box.width);
      zoom(event.deltaY > 0 ? 1.25 : 0.8, range[0] + share * (range[1] - range[0]));
    };
    node.addEventListener("wheel", wheel, { passive: false });
    return () => node.removeEventListener("wheel", wheel);
  });

  const { allocations } = replay;
  return (
    <div className="gpu-timeline" ref={holder}>
      <canvas
        ref={canvas}
        width={Math.max(1, width)}
        height={HEIGHT}
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
          else if (event.key === "+") zoom(0.5, moment);
          else if (event.key === "-") zoom(2, moment);
          else return;
          event.preventDefault();
        }}
        onDoubleClick={() => setRange([0, replay.events + 1])}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.clientX, range, moved: false };
        }}
        onPointerMove={(event) => {
          const held = drag.current;
          if (held && Math.abs(event.clientX - held.x) > 3) {
            held.moved = true;
            const span = held.range[1] - held.range[0];
            const moved = held.range[0] - ((event.clientX - held.x) / width) * span;
            const left = Math.max(0, Math.min(replay.events + 1 - span, moved));
            setRange([left, left + span]);
            return;
          }
          setHover(under(event));
        }}
        onPointerLeave={() => setHover(null)}
        onPointerUp={(event) => {
          const held = drag.current;
          drag.current = null;
          if (held?.moved) return;
          const { at, row } = under(event);
          onMoment(at);
          onChoose(row);
        }}
      />
      <div className="gpu-scale" aria-hidden="true">
        {formatBytes(top)}
      </div>
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
      <Mark at={columnOf(moment)} width={width} kind="now" label="" />
      {hover !== null && hover.row >= 0 && (
        <div
          className="gpu-tip"
          style={{ left: Math.min(hover.x + 12, width - 220), top: Math.max(0, hover.y - 34) }}
        >
          {formatBytes(allocations.size[hover.row]!)}
          {chosen === hover.row ? ", chosen" : ""}
        </div>
      )}
    </div>
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
  if (!(at >= 0 && at <= width)) return null;
  return (
    <div className={`gpu-mark gpu-mark-${kind}`} style={{ left: at }}>
      <span className={at > width - 90 ? "left" : ""}>{label}</span>
    </div>
  );
}
