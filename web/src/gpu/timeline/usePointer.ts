/** Pointer and wheel on the timeline: hover, press, drag to pan, wheel to zoom. */
import { type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";
import type { MomentRange } from "./useRange.js";

/** Moving less than this many pixels is a press. */
const DRAG_PIXELS = 3;

interface Under {
  readonly at: number;
  /** Row of an allocation; -1 if there is none. */
  readonly row: number;
}

interface PointerOptions {
  range: MomentRange;
  /** CSS pixels. */
  width: number;
  rowUnder(x: number, y: number): Under;
  onPress(under: Under): void;
}

export function usePointer({ range, width, rowUnder, onPress }: PointerOptions) {
  const { from, to } = range;
  const [hover, setHover] = useState<{ x: number; y: number; row: number } | null>(null);
  const drag = useRef<{ x: number; from: number; moved: boolean } | null>(null);
  const under = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = Math.max(0, Math.min(width - 1, event.clientX - box.left));
    const y = event.clientY - box.top;
    return { x, y, ...rowUnder(x, y) };
  };
  const listeners = {
    onPointerDown(event: PointerEvent) {
      event.currentTarget.setPointerCapture(event.pointerId);
      drag.current = { x: event.clientX, from, moved: false };
    },
    onPointerMove(event: PointerEvent) {
      const held = drag.current;
      if (held === null) {
        setHover(under(event));
      } else if (held.moved || Math.abs(event.clientX - held.x) > DRAG_PIXELS) {
        held.moved = true;
        setHover(null);
        range.move(held.from - ((event.clientX - held.x) / width) * (to - from));
      }
    },
    onPointerCancel() {
      drag.current = null;
    },
    onPointerLeave: () => setHover(null),
    onPointerUp(event: PointerEvent) {
      const held = drag.current;
      drag.current = null;
      if (held === null || held.moved) {
        return;
      }
      onPress(under(event));
    },
  };
  return { hover, listeners };
}

/** React's own listener is passive and could not keep the page from scrolling. */
export function useWheelZoom(canvas: RefObject<HTMLCanvasElement | null>, range: MomentRange) {
  useEffect(() => {
    const node = canvas.current;
    if (!node) {
      return;
    }
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = node.getBoundingClientRect();
      const share = (event.clientX - box.left) / Math.max(1, box.width);
      range.zoom(event.deltaY > 0 ? 1.25 : 0.8, share);
    };
    node.addEventListener("wheel", wheel, { passive: false });
    return () => node.removeEventListener("wheel", wheel);
  });
}
