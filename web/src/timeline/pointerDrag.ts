/** Selection in a chart by mouse, pen or finger: a press selects a time, a drag a window. */
import type uPlot from "uplot";

/** A movement of fewer pixels is a press. */
const DRAG_PIXELS = 4;

export interface ChartChoice {
  onTime(timeMs: number): void;
  onWindow(fromMs: number, toMs: number): void;
}

/**
 * Listens until the chart is removed. Its `.u-over` needs `touch-action: pan-y`: sideways movement selects;
 * vertical movement scrolls the page and cancels the drag.
 */
export function chooseByPointer(chart: uPlot, choice: () => ChartChoice): void {
  const { over } = chart;
  let pointer = -1;
  let from = 0;
  const left = (event: PointerEvent) => {
    const box = over.getBoundingClientRect();
    return Math.min(Math.max(event.clientX - box.left, 0), box.width);
  };
  const select = (a: number, b: number) =>
    chart.setSelect(
      { left: Math.min(a, b), width: Math.abs(b - a), top: 0, height: over.clientHeight },
      false,
    );
  const timeAt = (x: number) => chart.posToVal(x, "x") * 1000;

  over.addEventListener("pointerdown", (event) => {
    if (pointer >= 0 || event.button !== 0) {
      return;
    }
    pointer = event.pointerId;
    from = left(event);
    over.setPointerCapture(pointer);
  });
  over.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pointer) {
      return;
    }
    const to = left(event);
    const dragged = Math.abs(to - from) > DRAG_PIXELS;
    select(from, dragged ? to : from);
    // uPlot moves the cursor for a mouse.
    if (event.pointerType !== "mouse") {
      chart.setCursor({ left: to, top: 0 });
    }
  });
  over.addEventListener("pointerup", (event) => {
    if (event.pointerId !== pointer) {
      return;
    }
    const to = left(event);
    end();
    if (Math.abs(to - from) <= DRAG_PIXELS) {
      choice().onTime(timeAt(to));
    } else {
      choice().onWindow(timeAt(Math.min(from, to)), timeAt(Math.max(from, to)));
    }
  });
  over.addEventListener("pointercancel", (event) => {
    if (event.pointerId === pointer) {
      end();
    }
  });

  function end(): void {
    pointer = -1;
    select(0, 0);
  }
}
