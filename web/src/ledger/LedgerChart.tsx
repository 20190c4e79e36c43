/** The parts of RSS over time: the recorded ledgers, stacked, on the timeline's axis. */
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import type { TimeMs } from "../../../src/model/base/units.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { formatBytes, formatElapsed, formatShare } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { axes, chartColours, followWidth } from "../timeline/chart.js";
import { type LedgerCurves, ledgerCurves } from "./ledgerCurves.js";

interface LedgerChartProps {
  report: ReportDocument;
  theme: Theme;
  /** null: all processes. */
  pid: number | null;
}

export function LedgerChart({ report, theme, pid }: LedgerChartProps) {
  const { times, parts } = useMemo(() => ledgerCurves(report, pid), [report, pid]);
  const host = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLElement>(null);
  /** The ledger that the legend shows; null: the last. */
  const [shown, setShown] = useState<number | null>(null);
  const { startMs, endMs } = report.summary.window;
  const drawn = times.length > 1;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the style's colours follow the theme
  useEffect(() => {
    if (!host.current || !legend.current || !drawn) {
      return;
    }
    const fills = Array.from(legend.current.querySelectorAll(".ledger-key"), (key) =>
      getComputedStyle(key).getPropertyValue("--key").trim(),
    );
    const window = { startMs, endMs };
    const chart = stackedChart(
      host.current,
      { times, parts },
      { fills, window, onLedger: setShown },
    );
    const stopFollowing = followWidth(host.current, [chart]);
    return () => {
      stopFollowing();
      chart.destroy();
    };
  }, [times, parts, theme, startMs, endMs, drawn]);

  const at = shown !== null && shown < times.length ? shown : times.length - 1;
  const time = times[at];
  if (time === undefined) {
    return null;
  }
  const rss = parts.at(-1)?.stacked[at] ?? 0;
  return (
    <section className="panel" aria-label="Ledger">
      <figure className="timeline" aria-label="Parts of RSS">
        <figcaption className="timeline-legend" ref={legend}>
          <b>RSS by part</b>
          {parts
            .map(({ part, bytes }) => [part, bytes[at] ?? 0] as const)
            .map(([part, bytes]) => (
              <span key={part} className={`key ledger-key ledger-${part.replace(".", "-")}`}>
                {part} {formatBytes(bytes)}
                {rss > 0 && <small> {formatShare(bytes / rss)}</small>}
              </span>
            ))}
          <span className="timeline-readout">
            <span>
              {formatBytes(rss)} at {formatElapsed(time * 1000, startMs)}
            </span>
          </span>
        </figcaption>
        {drawn && (
          <div
            ref={host}
            className="chart"
            data-testid="ledger-chart"
            role="img"
            aria-label={`RSS by part over time, ${times.length} ledgers`}
          />
        )}
      </figure>
    </section>
  );
}

interface StackOptions {
  /** Colours by part. */
  readonly fills: readonly string[];
  readonly window: { readonly startMs: TimeMs; readonly endMs: TimeMs };
  /** Called with the ledger under the pointer; null if there is none. */
  onLedger(at: number | null): void;
}

function stackedChart(
  host: HTMLElement,
  { times, parts }: LedgerCurves,
  { fills, window, onLedger }: StackOptions,
): uPlot {
  const { startMs, endMs } = window;
  // The tallest curve is painted first.
  const order = parts.map((part, index) => ({ ...part, fill: fills[index] ?? "" })).reverse();
  return new uPlot(
    {
      width: host.clientWidth,
      height: 182,
      padding: [8, 26, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
      scales: {
        x: { time: false, range: () => [startMs / 1000, Math.max(endMs, startMs + 1000) / 1000] },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] },
      },
      axes: axes(chartColours(host), startMs, false, 4),
      series: [
        {},
        ...order.map(({ part, fill }) => ({
          label: part,
          stroke: fill,
          fill,
          width: 1,
          points: { show: false },
        })),
      ],
      hooks: { setCursor: [({ cursor }) => onLedger(cursor.idx ?? null)] },
    },
    [times, ...order.map(({ stacked }) => stacked)],
    host,
  );
}
