/** Marks drawn over and under the timeline's curves: events, the selected times, the compared window. */
import type uPlot from "uplot";
import type { TimelineEvent } from "../../../src/model/profile/series.js";
import type { ChartColours } from "./chart.js";

export interface ChartMarks {
  readonly startMs: number;
  readonly events: readonly TimelineEvent[];
  readonly snapshotTimesMs: readonly number[];
  readonly atMs: number | null;
  readonly baseMs: number | null;
}

/** Under the curves: the compared window, and a tick at each snapshot. */
export function drawSelection(chart: uPlot, marks: ChartMarks, colours: ChartColours): void {
  const { ctx, bbox } = chart;
  const x = (timeMs: number) => Math.round(chart.valToPos(timeMs / 1000, "x", true));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  if (marks.atMs !== null && marks.baseMs !== null) {
    const [from, to] = [
      x(Math.min(marks.atMs, marks.baseMs)),
      x(Math.max(marks.atMs, marks.baseMs)),
    ];
    ctx.fillStyle = colours.selection;
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
  }
  ctx.fillStyle = colours.faint;
  const tick = 4 * devicePixelRatio;
  for (const timeMs of marks.snapshotTimesMs) {
    ctx.fillRect(x(timeMs), bbox.top + bbox.height - tick, devicePixelRatio, tick);
  }
  ctx.restore();
}

const EVENT_SHOWN: Partial<Record<TimelineEvent["kind"], "danger" | "accent" | "faint">> = {
  "oom-kill": "danger",
  limit: "danger",
  "gpu-snapshot": "accent",
  peak: "accent",
  "process-start": "faint",
  "process-end": "faint",
  exec: "faint",
  "step-begin": "faint",
};

/** Over the curves: events and the selected times; events closer than a few pixels share a line. */
export function drawMarks(
  chart: uPlot,
  marks: ChartMarks,
  colours: ChartColours,
  named: boolean,
): void {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
  ctx.clip();
  let lastX = Number.NEGATIVE_INFINITY;
  for (const event of marks.events) {
    const tone = EVENT_SHOWN[event.kind];
    if (!tone) {
      continue;
    }
    const x = columnOf(chart, event.timeMs);
    if (tone === "faint" && x - lastX < 9 * ratio) {
      continue;
    }
    lastX = x;
    drawLine(chart, x, colours[tone], tone === "faint" ? [2 * ratio, 3 * ratio] : []);
    if (named) {
      drawFlag(chart, x, colours[tone], tone === "faint" ? 3 : 5);
    }
  }
  for (const [timeMs, letter] of [
    [marks.baseMs, "A"],
    [marks.atMs, marks.baseMs === null ? "" : "B"],
  ] as const) {
    if (timeMs === null) {
      continue;
    }
    const x = columnOf(chart, timeMs);
    drawLine(chart, x, colours.ink, []);
    if (named && letter) {
      drawLetter(chart, x, letter, colours.ink);
    }
  }
  ctx.restore();
}

/** The middle of a canvas pixel. */
function columnOf(chart: uPlot, timeMs: number): number {
  return Math.round(chart.valToPos(timeMs / 1000, "x", true)) + 0.5;
}

function drawLine({ ctx, bbox }: uPlot, x: number, stroke: string, dash: number[]): void {
  ctx.strokeStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** A triangle at the upper end of a line; `halfWidth` in CSS pixels. */
function drawFlag({ ctx, bbox }: uPlot, x: number, fill: string, halfWidth: number): void {
  const size = halfWidth * devicePixelRatio;
  ctx.fillStyle = fill;
  ctx.beginPath();
  ctx.moveTo(x - size, bbox.top - size);
  ctx.lineTo(x + size, bbox.top - size);
  ctx.lineTo(x, bbox.top + size * 0.6);
  ctx.fill();
}

/** Letter A is left of its line, B right. */
function drawLetter({ ctx, bbox }: uPlot, x: number, letter: "A" | "B", ink: string): void {
  const ratio = devicePixelRatio;
  ctx.fillStyle = ink;
  ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = letter === "A" ? "right" : "left";
  ctx.fillText(letter, x + (letter === "A" ? -4 : 4) * ratio, bbox.top + 12 * ratio);
}
