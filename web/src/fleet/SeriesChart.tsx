/** Memory or requests of a service over time, a line for each group or, of the ledger's parts, stacked. A drag chooses a range. */
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import type { SeriesAnswer } from "../../../src/model/wire/services.js";
import { formatBytes, formatRequestRate, formatWallClock } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { axes, chartColours, followWidth } from "../timeline/chart.js";
import type { TimeRange } from "./frame/timeRange.js";

const HEIGHT = 230;
/** More groups are hard to distinguish; the largest are drawn, and the number of others is shown. */
const MOST_LINES = 12;

interface SeriesChartProps {
  answer: SeriesAnswer;
  theme: Theme;
  isStacked: boolean;
  /** Shown in place of the chart if there is no curve. */
  empty: string;
  nameOf: (group: string) => string;
  choose: (range: TimeRange) => void;
}

interface Curve {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly className: string;
}

export function SeriesChart({ answer, theme, isStacked, empty, nameOf, choose }: SeriesChartProps) {
  const { startMs, stepMs } = answer;
  const format = answer.name === "requestsPerSecond" ? formatRequestRate : formatBytes;
  const { curves, leftOut } = useMemo(
    () => curvesOf(answer, isStacked, nameOf),
    [answer, isStacked, nameOf],
  );
  const host = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const steps = curves[0]?.values.length ?? 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the style's colours follow the theme
  useEffect(() => {
    if (!host.current || !legend.current || steps === 0) {
      return;
    }
    const colours = Array.from(legend.current.querySelectorAll(".key"), (key) =>
      getComputedStyle(key).getPropertyValue("--key").trim(),
    );
    const times = Array.from(
      { length: steps },
      (_, step) => (startMs + (step + 0.5) * stepMs) / 1000,
    );
    const chart = drawn(host.current, {
      times,
      curves,
      colours,
      isStacked,
      startMs,
      format,
      setAt,
      choose,
    });
    const stopFollowing = followWidth(host.current, [chart]);
    return () => {
      stopFollowing();
      chart.destroy();
    };
  }, [curves, steps, theme, isStacked, startMs, stepMs, format, choose]);

  const shown = at ?? lastKnown(curves);
  return (
    <figure className="timeline">
      <figcaption className="timeline-legend" ref={legend}>
        {curves.map(({ name, values, className }) => (
          <span key={name} className={`key ${className}`}>
            {name} {valueText(values[shown], format)}
          </span>
        ))}
        {leftOut > 0 && <span className="missing">and {leftOut} smaller ones</span>}
        <span className="timeline-readout">
          {steps > 0 && formatWallClock(startMs + (shown + 0.5) * stepMs, true)}
        </span>
      </figcaption>
      {steps > 0 ? (
        <div
          ref={host}
          className="chart"
          role="img"
          aria-label={`Chart of ${answer.name === "requestsPerSecond" ? "requests" : "memory"} over time`}
          data-testid="series"
        />
      ) : (
        <p className="empty">{empty}</p>
      )}
    </figure>
  );
}

function valueText(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}

function curvesOf(
  { groups }: SeriesAnswer,
  isStacked: boolean,
  nameOf: (group: string) => string,
): { curves: Curve[]; leftOut: number } {
  const size = (values: readonly (number | null)[]) =>
    Math.max(0, ...values.map((value) => value ?? 0));
  const bySize = groups.slice().sort((a, b) => size(b.values) - size(a.values));
  const most = isStacked ? bySize.length : MOST_LINES;
  const curves = bySize.slice(0, most).map(({ group, values }, index) => ({
    name: nameOf(group),
    values,
    className: isStacked
      ? `ledger-key ledger-${group.replaceAll(".", "-")}`
      : `line-${index % MOST_LINES}`,
  }));
  return { curves, leftOut: bySize.length - curves.length };
}

function lastKnown(curves: readonly Curve[]): number {
  return Math.max(
    0,
    ...curves.map(({ values }) => values.findLastIndex((value) => value !== null)),
  );
}

interface Drawing {
  readonly times: number[];
  readonly curves: readonly Curve[];
  readonly colours: readonly string[];
  readonly isStacked: boolean;
  readonly startMs: number;
  readonly format: (value: number) => string;
  readonly setAt: (at: number | null) => void;
  readonly choose: (range: TimeRange) => void;
}

function drawn(host: HTMLElement, drawing: Drawing): uPlot {
  const { times, curves, colours, isStacked, startMs, format, setAt, choose } = drawing;
  const lines = curves.map(({ values, name }, index) => ({
    label: name,
    stroke: colours[index] ?? "",
    data: values.map((value) => value ?? (isStacked ? 0 : null)),
  }));
  if (isStacked) {
    for (let index = 1; index < lines.length; index++) {
      const below = lines[index - 1]?.data ?? [];
      const own = lines[index];
      if (own) {
        own.data = own.data.map((value, step) => (value ?? 0) + (below[step] ?? 0));
      }
    }
    lines.reverse(); // the tallest is painted first
  }
  return new uPlot(
    {
      width: host.clientWidth,
      height: HEIGHT,
      padding: [8, 26, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: false }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] } },
      axes: axes(chartColours(host), startMs, false, 4, format),
      series: [
        {},
        ...lines.map(({ label, stroke }) => ({
          label,
          stroke,
          ...(isStacked ? { fill: stroke } : {}),
          width: isStacked ? 1 : 1.6,
          points: { show: false },
        })),
      ],
      hooks: {
        setCursor: [({ cursor }) => setAt(cursor.idx ?? null)],
        setSelect: [
          (chart) => {
            const { left, width } = chart.select;
            if (width > 4) {
              choose({
                startMs: Math.floor(chart.posToVal(left, "x") * 1000),
                endMs: Math.ceil(chart.posToVal(left + width, "x") * 1000),
              });
            }
          },
        ],
      },
    },
    [times, ...lines.map(({ data }) => data)] as uPlot.AlignedData,
    host,
  );
}
