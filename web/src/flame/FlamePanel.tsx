/** The flame graph with its breadcrumb, search, tooltip and the details of what is selected. */
import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import type { ProfileLook } from "../../../src/model/profile.js";
import type { ReportDocument } from "../../../src/model/report.js";
import { type Choices, type Choose, isObjects } from "../choices/choices.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import { framesMatching } from "../frames/frameNames.js";
import type { Theme } from "../theme/theme.js";
import { Breadcrumb, DifferenceBar, Tooltip } from "./FlameBars.js";
import { FlameDetails } from "./FlameDetails.js";
import { FlameCanvas } from "./flameCanvas.js";
import { buildFlameGraph, colourPositions } from "./flameGraph.js";
import { describe, emptyWords, labelOf } from "./flameWords.js";
import { flamePalette } from "./palette.js";
import { findMatches } from "./search.js";

interface FlamePanelProps {
  report: ReportDocument;
  look: ProfileLook | null;
  base: ProfileLook | null;
  rows: Uint32Array;
  baseRows: Uint32Array | null;
  choices: Choices;
  choose: Choose;
  theme: Theme;
}

export function FlamePanel(props: FlamePanelProps) {
  if (props.look === null) {
    return (
      <p className="empty">
        No samples: this program was not profiled, or it allocated less than a sampling period.
      </p>
    );
  }
  return <FlameGraphView {...props} look={props.look} />;
}

function FlameGraphView({
  report,
  look,
  base,
  rows,
  baseRows,
  choices,
  choose,
  theme,
}: FlamePanelProps & { look: ProfileLook }) {
  const { tables } = report;
  const { value, reversed, differenceWidth, colourMode, rootsBelow } = choices;
  // Typing goes on while a large tree is searched.
  const search = useDeferredValue(choices.search);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const surface = useRef<HTMLCanvasElement>(null);
  const canvas = useRef<FlameCanvas | null>(null);
  const [hover, setHover] = useState({ position: -1, x: 0, y: 0 });
  const [selected, setSelected] = useState(-1);
  const [focused, setFocused] = useState(0);

  const flame = useMemo(
    () =>
      buildFlameGraph(
        tables,
        { look, rows },
        base && baseRows ? { look: base, rows: baseRows } : null,
        value,
        reversed,
        differenceWidth,
      ),
    [tables, look, rows, base, baseRows, value, reversed, differenceWidth],
  );
  const colour = useMemo(
    () => colourPositions(tables, flame, colourMode),
    [tables, flame, colourMode],
  );
  const found = useMemo(() => {
    if (search === "") return null;
    const frames = framesMatching(tables, search);
    return (
      frames &&
      findMatches(
        flame.layout,
        (position) => flame.graph.frame[flame.layout.node[position]],
        frames,
      )
    );
  }, [tables, flame, search]);

  useEffect(() => {
    if (!scroller.current || !spacer.current || !surface.current) return;
    canvas.current = new FlameCanvas(scroller.current, spacer.current, surface.current, {
      onHover: (position, x, y) =>
        setHover((now) => (position < 0 && now.position < 0 ? now : { position, x, y })),
      onSelect: setSelected,
      onFocus: setFocused,
    });
    return () => canvas.current?.destroy();
  }, []);

  useEffect(() => {
    setSelected(-1);
    setFocused(0);
    setHover({ position: -1, x: 0, y: 0 });
    void flame;
  }, [flame]);

  useEffect(() => {
    canvas.current?.setScene({
      layout: flame.layout,
      colour,
      palette: flamePalette(theme),
      label: (position) => labelOf(report, flame, position, choices),
      matches: found,
      rootsBelow,
    });
  }, [report, flame, colour, theme, found, rootsBelow, choices]);

  const step = (by: 1 | -1) => {
    if (!found || !canvas.current) return;
    const next = found.next(canvas.current.selected, by);
    if (next >= 0) canvas.current.select(next);
  };
  const inRange = (position: number) => position >= 0 && position < flame.layout.node.length;
  const measure = (amount: number) =>
    isObjects(value) ? formatCount(amount) : formatBytes(amount);

  return (
    <div className="flame">
      <div className="flame-bar">
        <Breadcrumb
          report={report}
          flame={flame}
          focused={inRange(focused) ? focused : 0}
          choices={choices}
          focus={(position) => canvas.current?.focus(position)}
        />
        {search !== "" && (
          <span className="found" role="status">
            {found === null
              ? "this pattern cannot be read"
              : `${formatCount(found.nodes)} found, ${formatShare(found.share)} of the width`}
            {found !== null && found.nodes > 0 && (
              <>
                <button
                  type="button"
                  className="quiet"
                  onClick={() => step(-1)}
                  aria-label="Previous match"
                >
                  ↑
                </button>
                <button
                  type="button"
                  className="quiet"
                  onClick={() => step(1)}
                  aria-label="Next match"
                >
                  ↓
                </button>
              </>
            )}
          </span>
        )}
      </div>
      {base && (
        <DifferenceBar
          report={report}
          flame={flame}
          look={look}
          base={base}
          choices={choices}
          choose={choose}
        />
      )}
      <div className="flame-body">
        <div className="flame-scroller" ref={scroller}>
          <div ref={spacer}>
            {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: walked with the arrow keys */}
            <canvas
              ref={surface}
              className="flame-canvas"
              data-testid="flame"
              tabIndex={0}
              role="application"
              aria-label={`Flame graph of ${describe(choices)}; arrow keys walk, Enter zooms in, Escape out`}
              aria-describedby="flame-selected"
            />
          </div>
          {flame.width <= 0 && (
            <p className="empty over">{emptyWords(report, choices, base !== null)}</p>
          )}
        </div>
        <FlameDetails
          report={report}
          look={look}
          rows={rows}
          flame={flame}
          position={inRange(selected) ? selected : -1}
          choices={choices}
          zoom={() => canvas.current?.focus(selected)}
          close={() => canvas.current?.select(-1)}
        />
      </div>
      {inRange(hover.position) && (
        <Tooltip report={report} flame={flame} hover={hover} measure={measure} choices={choices} />
      )}
    </div>
  );
}
