/** Memory over time: RSS, PSS and the device's above, live bytes by allocator below, on one time axis. */
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import type { ReportDocument } from "../../../src/model/report.js";
import type { TimelineEvent } from "../../../src/model/series.js";
import { formatBytes, formatElapsed } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import {
  axes,
  type ChartColours,
  type ChartMarks,
  chartColours,
  drawMarks,
  drawSelection,
} from "./chart.js";
import { type DeviceCurves, deviceCurves } from "./deviceCurves.js";
import { chooseByPointer } from "./pointerDrag.js";
import { liveCurves, memoryCurves } from "./timelineData.js";

const SYNC = "timeline";

interface TimelineProps {
  report: ReportDocument;
  theme: Theme;
  pid: number | null;
  atMs: number | null;
  baseMs: number | null;
  /** A click: the figures of this time. */
  onTime(timeMs: number): void;
  /** A drag: what changed between two times. */
  onWindow(fromMs: number, toMs: number): void;
}

export function Timeline({ report, theme, pid, atMs, baseMs, onTime, onWindow }: TimelineProps) {
  const memory = useMemo(() => memoryCurves(report, pid), [report, pid]);
  const device = useMemo(() => deviceCurves(report, pid, memory.times), [report, pid, memory]);
  const live = useMemo(() => liveCurves(report.tables, report.looks, pid), [report, pid]);
  const events = useMemo(() => eventsOf(report, pid), [report, pid]);
  const [zoom, setZoom] = useState<[number, number] | null>(null);
  const [readout, setReadout] = useState<number | null>(null);
  const top = useRef<HTMLDivElement>(null);
  const bottom = useRef<HTMLDivElement>(null);
  const charts = useRef<uPlot[]>([]);
  const startMs = report.summary.window.startMs;
  const extent = useMemo(() => timeExtent(report, memory.times), [report, memory]);
  const marks = useRef<ChartMarks>({ startMs, events, lookTimesMs: [], atMs, baseMs });
  marks.current = {
    startMs,
    events,
    lookTimesMs: report.looks.map((look) => look.timeMs),
    atMs,
    baseMs,
  };
  const actions = useRef({ onTime, onWindow });
  actions.current = { onTime, onWindow };
  const hasPss = memory.pss.some((value) => value !== null);
  const hasLive = live.times.length > 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the style's colours follow the theme
  useEffect(() => {
    if (!top.current) return;
    const colours = chartColours(top.current);
    const made: uPlot[] = [];
    const shared = (
      host: HTMLElement,
      height: number,
      named: boolean,
    ): Omit<uPlot.Options, "series"> => ({
      width: host.clientWidth,
      height,
      padding: [named ? 12 : 6, 26, named && hasLive ? 8 : 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: SYNC, setSeries: false },
        drag: { x: false, y: false },
        y: false,
        points: { size: 6 },
      },
      scales: {
        x: { time: false, range: () => zoom ?? extent },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] },
      },
      axes: axes(colours, startMs, named && hasLive, named ? 5 : 3),
      hooks: {
        drawClear: [(chart) => drawSelection(chart, marks.current, colours)],
        draw: [(chart) => drawMarks(chart, marks.current, colours, named)],
        setCursor: [
          (chart) =>
            setReadout(
              chart.cursor.left !== undefined && chart.cursor.left >= 0
                ? chart.posToVal(chart.cursor.left, "x") * 1000
                : null,
            ),
        ],
        ready: [(chart) => chooseByPointer(chart, () => actions.current)],
      },
    });
    made.push(
      new uPlot(
        {
          ...shared(top.current, hasLive ? 168 : 210, true),
          series: [
            {},
            {
              label: "RSS",
              stroke: colours.rss,
              width: 1.75,
              fill: `${colours.rss}1c`,
              spanGaps: true,
              points: { show: memory.times.length < 3 },
            },
            {
              label: "PSS",
              stroke: colours.pss,
              width: 1.5,
              dash: [5, 4],
              spanGaps: true,
              points: { show: memory.times.length < 3 },
            },
            ...(device === null ? [] : deviceLines(colours)),
          ],
        },
        [
          memory.times,
          memory.rss,
          memory.pss,
          ...(device === null ? [] : [device.reserved, device.allocated]),
        ],
        top.current,
      ),
    );
    if (bottom.current && hasLive) {
      const order = [2, 1, 0]; // the tallest of the stack is painted first
      made.push(
        new uPlot(
          {
            ...shared(bottom.current, 112, false),
            series: [
              {},
              ...order.map((domain) => ({
                label: String(domain),
                stroke: colours.domains[domain],
                fill: colours.domains[domain],
                width: 1,
                points: { show: live.times.length < 3 },
              })),
            ],
          },
          [live.times, ...order.map((domain) => live.stacked[domain])],
          bottom.current,
        ),
      );
    }
    charts.current = made;
    const observer = new ResizeObserver(() => {
      for (const chart of made) {
        const width = chart.root.parentElement?.clientWidth ?? 0;
        if (width > 0 && width !== chart.width) chart.setSize({ width, height: chart.height });
      }
    });
    observer.observe(top.current);
    return () => {
      observer.disconnect();
      for (const chart of made) chart.destroy();
    };
  }, [memory, device, live, theme, zoom, extent, startMs, hasLive]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the marks are drawn from a ref
  useEffect(() => {
    for (const chart of charts.current) chart.redraw(false);
  }, [atMs, baseMs, events]);

  if (memory.times.length === 0) {
    return (
      <p className="empty">
        No readings of this process: it ended before the first poll, or /proc could not be read.
      </p>
    );
  }
  const chosen = baseMs !== null && atMs !== null && baseMs !== atMs;
  return (
    <figure className="timeline" aria-label="Memory over time">
      <figcaption className="timeline-legend">
        <span className="key key-rss">RSS</span>
        {hasPss ? (
          <span className="key key-pss">PSS</span>
        ) : (
          <span className="missing">PSS could not be read</span>
        )}
        {device && <span className="timeline-divider">device</span>}
        {device && <span className="key key-reserved">reserved</span>}
        {device && <span className="key key-allocated">allocated</span>}
        {hasLive && <span className="timeline-divider">live bytes</span>}
        {hasLive && <span className="key key-python">Python</span>}
        {hasLive && <span className="key key-native">native</span>}
        {hasLive && <span className="key key-mapped">mapped</span>}
        <span className="timeline-readout" aria-live="off">
          {readout !== null && (
            <Readout
              timeMs={readout}
              startMs={startMs}
              memory={memory}
              device={device}
              live={live}
              events={events}
              span={(zoom ?? extent)[1] - (zoom ?? extent)[0]}
            />
          )}
        </span>
        {chosen && (
          <button type="button" className="quiet" onClick={() => setZoom(windowOf(baseMs, atMs))}>
            Zoom to window
          </button>
        )}
        {zoom && (
          <button type="button" className="quiet" onClick={() => setZoom(null)}>
            Whole run
          </button>
        )}
      </figcaption>
      <div
        ref={top}
        className="chart"
        data-testid="memory-chart"
        role="img"
        aria-label={`RSS${hasPss ? " and PSS" : ""} over time, ${report.summary.processes.length} processes`}
      />
      {hasLive ? (
        <div
          ref={bottom}
          className="chart"
          data-testid="live-chart"
          role="img"
          aria-label={`Live bytes by allocator over time, up to ${formatBytes(live.total)}`}
        />
      ) : (
        <p className="empty">
          No samples: this program was not profiled, or it allocated less than a sampling period.
        </p>
      )}
    </figure>
  );
}

interface ReadoutProps {
  timeMs: number;
  startMs: number;
  memory: ReturnType<typeof memoryCurves>;
  device: DeviceCurves | null;
  live: ReturnType<typeof liveCurves>;
  events: readonly TimelineEvent[];
  /** Seconds in sight. */
  span: number;
}

function Readout({ timeMs, startMs, memory, device, live, events, span }: ReadoutProps) {
  const rss = lastBefore(memory.times, memory.rss, timeMs / 1000);
  const pss = lastBefore(memory.times, memory.pss, timeMs / 1000);
  const held = device && lastBefore(memory.times, device.reserved, timeMs / 1000);
  const total =
    live.stacked.length > 0
      ? lastBefore(live.times, live.stacked[live.stacked.length - 1], timeMs / 1000)
      : null;
  const near = events.filter((event) => Math.abs(event.timeMs - timeMs) < span * 6).slice(0, 2);
  return (
    <>
      <b>{formatElapsed(timeMs, startMs)}</b>
      {rss !== null && <span>RSS {formatBytes(rss)}</span>}
      {pss !== null && <span>PSS {formatBytes(pss)}</span>}
      {held !== null && <span>device {formatBytes(held)}</span>}
      {total !== null && <span>live {formatBytes(total)}</span>}
      {near.map((event) => (
        <em key={`${event.timeMs}${event.kind}${event.pid}`}>{eventWords(event)}</em>
      ))}
    </>
  );
}

/** Reserved as the frame, allocated within it. */
function deviceLines({ reserved, allocated }: ChartColours): uPlot.Series[] {
  return [
    { label: "device reserved", stroke: reserved, width: 1.25, dash: [2, 3], spanGaps: true },
    { label: "device allocated", stroke: allocated, width: 1.75, spanGaps: true },
  ].map((line) => ({ ...line, points: { show: false } }));
}

function eventWords(event: TimelineEvent): string {
  return `${event.kind.replace("-", " ")} ${event.pid}${event.detail ? `: ${event.detail}` : ""}`;
}

function lastBefore(
  times: readonly number[],
  values: readonly (number | null)[],
  time: number,
): number | null {
  let found: number | null = null;
  for (let i = 0; i < times.length && times[i] <= time; i++) found = values[i] ?? found;
  return found;
}

function windowOf(a: number, b: number): [number, number] {
  const [from, to] = [Math.min(a, b) / 1000, Math.max(a, b) / 1000];
  const margin = (to - from) * 0.05;
  return [from - margin, to + margin];
}

function timeExtent(report: ReportDocument, times: readonly number[]): [number, number] {
  const { startMs, endMs } = report.summary.window;
  const from = Math.min(startMs / 1000, times[0] ?? Number.POSITIVE_INFINITY);
  const to = Math.max(endMs / 1000, times.at(-1) ?? 0);
  return to > from ? [from, to] : [from, from + 1];
}

function eventsOf(report: ReportDocument, pid: number | null): TimelineEvent[] {
  const kept = report.events.filter((event) => pid === null || event.pid === pid);
  const { peakMs, peakBytes } = report.summary.rss;
  const hasPeak = kept.some((event) => event.kind === "peak");
  if (pid === null && !hasPeak && peakMs > 0) {
    kept.push({
      timeMs: peakMs,
      pid: report.summary.target.pid,
      kind: "peak",
      detail: formatBytes(peakBytes),
    });
  }
  return kept.sort((a, b) => a.timeMs - b.timeMs);
}
