/** Colours, axes and size of the charts over time. */
import type uPlot from "uplot";
import { formatBytes, formatElapsed, formatWallClock } from "../format/numbers.js";

/** Ticks this far apart mean a recording of several days, so the clock shows the date. */
const LONG_INCREMENT_SECONDS = 14_400;

export interface ChartColours {
  readonly rss: string;
  readonly pss: string;
  /** Device memory. */
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
  format: (value: number) => string = formatBytes,
): uPlot.Axis[] {
  const font = "11px system-ui, sans-serif";
  const line = { stroke: colours.grid, width: 1 };
  return [
    {
      stroke: colours.faint,
      font,
      size: compact ? 0 : 40,
      grid: line,
      ticks: { ...line, size: 4 },
      space: 80,
      incrs: [
        0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
        28800, 86400,
      ],
      splits: (_chart, _axis, min, max, increment) =>
        splitsFrom(startMs / 1000, min, max, increment),
      // Shows local clock time below the time since the start, because logs use clock time.
      values: (_chart, splits, _axis, _space, increment) =>
        splits.map((time) => (compact ? "" : timeLabel(time * 1000, startMs, increment))),
    },
    {
      stroke: colours.faint,
      font,
      size: 62,
      grid: line,
      ticks: { show: false },
      space: 34,
      splits: (_chart, _axis, _min, max) => byteSplits(max, lines),
      values: (_, splits) => splits.map((bytes) => (bytes === 0 ? "0" : format(bytes))),
    },
  ];
}

function timeLabel(timeMs: number, startMs: number, incrementSeconds: number): string {
  const clock = formatWallClock(timeMs, incrementSeconds >= LONG_INCREMENT_SECONDS);
  return `${formatElapsed(timeMs, startMs)}\n${clock}`;
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
  if (!(max > 0)) {
    return [0];
  }
  const step = 2 ** Math.ceil(Math.log2(max / (most + 0.999)));
  const splits: number[] = [];
  for (let value = 0; value <= max; value += step) {
    splits.push(value);
  }
  return splits;
}

/** Keeps the charts as wide as the elements that hold them, until the returned function is called. */
export function followWidth(host: Element, charts: readonly uPlot[]): () => void {
  const observer = new ResizeObserver(() => {
    for (const chart of charts) {
      const width = chart.root.parentElement?.clientWidth ?? 0;
      if (width > 0 && width !== chart.width) {
        chart.setSize({ width, height: chart.height });
      }
    }
  });
  observer.observe(host);
  return () => observer.disconnect();
}
