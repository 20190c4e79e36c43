/** Options that both charts of the timeline share, and what is drawn over them. */
import type uPlot from "uplot";
import type { TimelineEvent } from "../../../src/model/series.js";
import { formatBytes, formatElapsed } from "../format/numbers.js";

export interface ChartColours {
  readonly rss: string;
  readonly pss: string;
  /** Of devices. */
  readonly reserved: string;
  readonly allocated: string;
  readonly domains: readonly string[];
  readonly ink: string;
  readonly faint: string;
  readonly grid: string;
  readonly selection: string;
  readonly accent: string;
  readonly danger: string;
}

export interface ChartMarks {
  readonly startMs: number;
  readonly events: readonly TimelineEvent[];
  readonly lookTimesMs: readonly number[];
  readonly atMs: number | null;
  readonly baseMs: number | null;
}

/** Reads the chart's colours from the page's style. */
export function chartColours(element: Element): ChartColours {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    rss: of("--rss"),
    pss: of("--pss"),
    reserved: of("--device-reserved"),
    allocated: of("--device-allocated"),
    domains: [of("--python"), of("--native"), of("--mapped")],
    ink: of("--ink-2"),
    faint: of("--ink-3"),
    grid: of("--grid"),
    selection: of("--selection"),
    accent: of("--accent"),
    danger: of("--danger"),
  };
}

export function axes(
  colours: ChartColours,
  startMs: number,
  compact: boolean,
  lines: number,
): uPlot.Axis[] {
  const font = "11px system-ui, sans-serif";
  const line = { stroke: colours.grid, width: 1 };
  return [
    {
      stroke: colours.faint,
      font,
      size: compact ? 0 : 26,
      grid: line,
      ticks: { ...line, size: 4 },
      space: 80,
      incrs: [
        0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
        28800, 86400,
      ],
      splits: (_chart, _axis, min, max, increment) =>
        splitsFrom(startMs / 1000, min, max, increment),
      values: (_, splits) =>
        splits.map((time) => (compact ? "" : formatElapsed(time * 1000, startMs))),
    },
    {
      stroke: colours.faint,
      font,
      size: 62,
      grid: line,
      ticks: { show: false },
      space: 34,
      splits: (_chart, _axis, _min, max) => byteSplits(max, lines),
      values: (_, splits) => splits.map((bytes) => (bytes === 0 ? "0" : formatBytes(bytes))),
    },
  ];
}

/** Round distances from the start, not from 1970. */
function splitsFrom(start: number, min: number, max: number, increment: number): number[] {
  const splits: number[] = [];
  for (let k = Math.ceil((min - start) / increment - 1e-9); start + k * increment <= max; k++) {
    splits.push(start + k * increment);
  }
  return splits;
}

/** At most `most` lines above zero, at multiples of a power of two. */
function byteSplits(max: number, most: number): number[] {
  if (!(max > 0)) return [0];
  const step = 2 ** Math.ceil(Math.log2(max / (most + 0.999)));
  const splits: number[] = [];
  for (let value = 0; value <= max; value += step) splits.push(value);
  return splits;
}

/** What the reader chose, under the curves: the compared window and the looks' times. */
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
  for (const timeMs of marks.lookTimesMs)
    ctx.fillRect(x(timeMs), bbox.top + bbox.height - tick, devicePixelRatio, tick);
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

/** Events and the chosen times, over the curves; events closer than a few pixels share a line. */
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
    if (!tone) continue;
    const x = Math.round(chart.valToPos(event.timeMs / 1000, "x", true)) + 0.5;
    if (tone === "faint" && x - lastX < 9 * ratio) continue;
    lastX = x;
    line(x, colours[tone], tone === "faint" ? [2 * ratio, 3 * ratio] : []);
    if (named) flag(x, colours[tone], tone !== "faint");
  }
  for (const [timeMs, letter] of [
    [marks.baseMs, "A"],
    [marks.atMs, marks.baseMs === null ? "" : "B"],
  ] as const) {
    if (timeMs === null) continue;
    const x = Math.round(chart.valToPos(timeMs / 1000, "x", true)) + 0.5;
    line(x, colours.ink, []);
    if (named && letter) {
      ctx.fillStyle = colours.ink;
      ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
      ctx.textAlign = letter === "A" ? "right" : "left";
      ctx.fillText(letter, x + (letter === "A" ? -4 : 4) * ratio, bbox.top + 12 * ratio);
    }
  }
  ctx.restore();

  function line(x: number, stroke: string, dash: number[]): void {
    ctx.strokeStyle = stroke;
    ctx.lineWidth = ratio;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
  }

  function flag(x: number, fill: string, large: boolean): void {
    const size = (large ? 5 : 3) * ratio;
    ctx.fillStyle = fill;
    ctx.beginPath();
    ctx.moveTo(x - size, bbox.top - size);
    ctx.lineTo(x + size, bbox.top - size);
    ctx.lineTo(x, bbox.top + size * 0.6);
    ctx.fill();
  }
}
