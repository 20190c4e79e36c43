/** The parts around the flame graph: breadcrumb, comparison, tooltip. */

import { float64At, uint32At } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { ProfileSnapshot } from "../../../src/model/profile/profile.js";
import { type Choices, type Choose, isObjects } from "../choices/choices.js";
import { formatCount, formatElapsed, formatShare, formatSignedBytes } from "../format/numbers.js";
import type { FlameGraph } from "./flameGraph.js";
import { describe, labelOf } from "./flameWords.js";

interface BreadcrumbProps {
  report: ReportDocument;
  flame: FlameGraph;
  focused: number;
  choices: Choices;
  focus: (position: number) => void;
}

export function Breadcrumb({ report, flame, focused, choices, focus }: BreadcrumbProps) {
  const path: number[] = [];
  for (let at = focused; at > 0; at = uint32At(flame.layout.parent, at)) {
    path.unshift(at);
  }
  const shown = path.slice(-4);
  return (
    <nav className="crumbs" aria-label="Zoom">
      <button type="button" className="quiet" disabled={focused === 0} onClick={() => focus(0)}>
        {labelOf(report, flame, 0, choices).name}
      </button>
      {path.length > shown.length && <span>…</span>}
      {shown.map((position) => (
        <button
          key={position}
          type="button"
          className="quiet"
          disabled={position === focused}
          onClick={() => focus(position)}
        >
          {labelOf(report, flame, position, choices).name}
        </button>
      ))}
    </nav>
  );
}

interface DifferenceBarProps {
  report: ReportDocument;
  flame: FlameGraph;
  snapshot: ProfileSnapshot;
  base: ProfileSnapshot;
  choices: Choices;
  choose: Choose;
}

export function DifferenceBar({
  report,
  flame,
  snapshot,
  base,
  choices,
  choose,
}: DifferenceBarProps) {
  const startMs = report.summary.window.startMs;
  const change = (flame.total[0] ?? 0) - (flame.totalBefore?.[0] ?? 0);
  return (
    <p className="difference" role="status">
      <b>A</b> {formatElapsed(base.timeMs, startMs)} → <b>B</b>{" "}
      {formatElapsed(snapshot.timeMs, startMs)}: {describe(choices)}{" "}
      <b>
        {isObjects(choices.value)
          ? `${change > 0 ? "+" : ""}${formatCount(change)}`
          : formatSignedBytes(change)}
      </b>
      <span className="scale" aria-hidden="true">
        <i className="scale-shrunk" /> shrunk <i className="scale-grown" /> grown
      </span>
      <button type="button" className="quiet" onClick={() => choose({ base: null })}>
        End comparison
      </button>
    </p>
  );
}

interface TooltipProps {
  report: ReportDocument;
  flame: FlameGraph;
  hover: { position: number; x: number; y: number };
  measure: (amount: number) => string;
  choices: Choices;
}

export function Tooltip({ report, flame, hover, measure, choices }: TooltipProps) {
  const node = uint32At(flame.layout.node, hover.position);
  const label = labelOf(report, flame, hover.position, choices);
  const amount = float64At(flame.total, node);
  const before = flame.totalBefore?.[node];
  const right = hover.x > innerWidth - 340;
  return (
    <div
      className="tooltip"
      role="tooltip"
      style={{
        top: Math.min(hover.y + 18, innerHeight - 90),
        ...(right ? { right: innerWidth - hover.x + 12 } : { left: hover.x + 14 }),
      }}
    >
      <b>{label.name}</b>
      {label.place && <span className="place">{label.place}</span>}
      <span>
        {before === undefined
          ? `${measure(amount)} · ${formatShare(amount / (flame.total[0] || 1))}`
          : `${measure(before)} → ${measure(amount)} (${amount >= before ? "+" : ""}${measure(amount - before)})`}
      </span>
    </div>
  );
}
