/** The timeline's two charts (uPlot): memory above, live bytes by allocator below, on one time axis. */
import { type RefObject, useEffect, useRef } from "react";
import uPlot from "uplot";
import { Domain } from "../../../src/model/profile/profile.js";
import type { Theme } from "../theme/theme.js";
import { axes, type ChartColours, chartColours, followWidth } from "./chart.js";
import { type ChartMarks, drawMarks, drawSelection } from "./chartMarks.js";
import { type ChartChoice, chooseByPointer } from "./pointerDrag.js";
import type { TimelineCurves, TimeRange } from "./useTimelineCurves.js";

const SYNC = "timeline";

interface TimelineCharts {
  curves: TimelineCurves;
  marks: ChartMarks;
  actions: ChartChoice;
  theme: Theme;
  inSight: TimeRange;
  /** The time under the pointer; null if there is none. */
  onPointer(timeMs: number | null): void;
}

/** State that the charts read through a ref, so that a change does not recreate them. */
interface ChartContext {
  readonly marks: RefObject<ChartMarks>;
  readonly actions: RefObject<ChartChoice>;
  readonly colours: ChartColours;
  readonly inSight: TimeRange;
  readonly onPointer: (timeMs: number | null) => void;
}

/** The elements that contain the upper and the lower chart. */
export function useTimelineCharts(timeline: TimelineCharts) {
  const { curves, theme, inSight, onPointer } = timeline;
  const top = useRef<HTMLDivElement>(null);
  const bottom = useRef<HTMLDivElement>(null);
  const charts = useRef<uPlot[]>([]);
  const marks = useRef(timeline.marks);
  marks.current = timeline.marks;
  const actions = useRef(timeline.actions);
  actions.current = timeline.actions;
  const { startMs, atMs, baseMs, events } = timeline.marks;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the style's colours follow the theme
  useEffect(() => {
    if (!top.current) {
      return;
    }
    const colours = chartColours(top.current);
    const context = { marks, actions, colours, inSight, onPointer };
    const made = [memoryChart(top.current, curves, context)];
    if (bottom.current && hasLive(curves)) {
      made.push(liveChart(bottom.current, curves, context));
    }
    charts.current = made;
    const stopFollowing = followWidth(top.current, made);
    return () => {
      stopFollowing();
      for (const chart of made) {
        chart.destroy();
      }
    };
  }, [curves, theme, inSight, startMs]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the marks are drawn from a ref
  useEffect(() => {
    for (const chart of charts.current) {
      chart.redraw(false);
    }
  }, [atMs, baseMs, events]);

  return { top, bottom };
}

export function hasLive({ live }: TimelineCurves): boolean {
  return live.times.length > 0;
}

function memoryChart(host: HTMLElement, curves: TimelineCurves, context: ChartContext): uPlot {
  const { memory, device } = curves;
  const { colours } = context;
  const points = { show: memory.times.length < 3 };
  const above = hasLive(curves);
  return new uPlot(
    {
      ...sharedOptions(context, { named: true, above }),
      width: host.clientWidth,
      height: above ? 168 : 224,
      series: [
        {},
        {
          label: memory.name,
          stroke: colours.rss,
          width: 1.75,
          fill: `${colours.rss}1c`,
          spanGaps: true,
          points,
        },
        { label: "PSS", stroke: colours.pss, width: 1.5, dash: [5, 4], spanGaps: true, points },
        ...(device === null ? [] : deviceLines(colours)),
      ],
    },
    [
      memory.times,
      memory.rss,
      memory.pss,
      ...(device === null ? [] : [device.reserved, device.allocated]),
    ],
    host,
  );
}

function liveChart(host: HTMLElement, { live }: TimelineCurves, context: ChartContext): uPlot {
  // The tallest curve of the stack is painted first.
  const order = [Domain.mapped, Domain.native, Domain.python];
  return new uPlot(
    {
      ...sharedOptions(context, { named: false, above: false }),
      width: host.clientWidth,
      height: 126,
      series: [
        {},
        ...order.map((domain) => ({
          label: String(domain),
          stroke: context.colours.domains[domain] ?? "",
          fill: context.colours.domains[domain] ?? "",
          width: 1,
          points: { show: live.times.length < 3 },
        })),
      ],
    },
    [live.times, ...order.map((domain) => live.stacked[domain] ?? [])],
    host,
  );
}

/** `named`: marks have letters and flags; `above`: another chart below it shows the time axis. */
function sharedOptions(
  { marks, actions, colours, inSight, onPointer }: ChartContext,
  { named, above }: { named: boolean; above: boolean },
): Omit<uPlot.Options, "series" | "width" | "height"> {
  const { startMs } = marks.current;
  return {
    padding: [named ? 12 : 6, 26, above ? 8 : 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: SYNC, setSeries: false },
      drag: { x: false, y: false },
      y: false,
      points: { size: 6 },
    },
    scales: {
      x: { time: false, range: () => [...inSight] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] },
    },
    axes: axes(colours, startMs, above, named ? 5 : 3),
    hooks: {
      drawClear: [(chart) => drawSelection(chart, marks.current, colours)],
      draw: [(chart) => drawMarks(chart, marks.current, colours, named)],
      setCursor: [
        (chart) =>
          onPointer(
            chart.cursor.left !== undefined && chart.cursor.left >= 0
              ? chart.posToVal(chart.cursor.left, "x") * 1000
              : null,
          ),
      ],
      ready: [(chart) => chooseByPointer(chart, () => actions.current)],
    },
  };
}

/** Reserved memory as an outline, allocated memory inside it. */
function deviceLines({ reserved, allocated }: ChartColours): uPlot.Series[] {
  return [
    { label: "device reserved", stroke: reserved, width: 1.25, dash: [2, 3], spanGaps: true },
    { label: "device allocated", stroke: allocated, width: 1.75, spanGaps: true },
  ].map((line) => ({ ...line, points: { show: false } }));
}
