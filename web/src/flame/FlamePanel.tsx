/** The flame graph with its breadcrumb, search, tooltip and the details of the selection. */

import { useDeferredValue, useMemo } from "react";
import { uint32At } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { ProfileSnapshot } from "../../../src/model/profile/profile.js";
import { type Choices, type Choose, isObjects } from "../choices/choices.js";
import { noSamples } from "../format/absent.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import { framesMatching } from "../frames/frameNames.js";
import type { Theme } from "../theme/theme.js";
import type { FlameScene } from "./draw.js";
import { Breadcrumb, DifferenceBar, Tooltip } from "./FlameBars.js";
import { FlameDetails } from "./FlameDetails.js";
import { buildFlameGraph, colourPositions } from "./flameGraph.js";
import { describe, emptyWords, labelOf } from "./flameWords.js";
import { flamePalette } from "./palette.js";
import { findMatches, type SearchMatches } from "./search.js";
import { useFlameCanvas } from "./useFlameCanvas.js";

interface FlamePanelProps {
  report: ReportDocument;
  snapshot: ProfileSnapshot | null;
  base: ProfileSnapshot | null;
  rows: Uint32Array;
  baseRows: Uint32Array | null;
  choices: Choices;
  choose: Choose;
  theme: Theme;
}

export function FlamePanel(props: FlamePanelProps) {
  if (props.snapshot === null) {
    return <p className="empty">{noSamples(props.report.summary.imported)}</p>;
  }
  return <FlameGraphView {...props} snapshot={props.snapshot} />;
}

function FlameGraphView(props: FlamePanelProps & { snapshot: ProfileSnapshot }) {
  const { report, snapshot, base, rows, choices, choose, theme } = props;
  // Typing stays responsive while a large tree is searched.
  const search = useDeferredValue(choices.search);
  const { flame, colour, found } = useFlame(props, search);
  const scene: FlameScene = useMemo(
    () => ({
      layout: flame.layout,
      colour,
      palette: flamePalette(theme),
      label: (position) => labelOf(report, flame, position, choices),
      matches: found,
      rootsBelow: choices.rootsBelow,
    }),
    [report, flame, colour, theme, found, choices],
  );
  const { elements, control, hover, selected, focused } = useFlameCanvas(flame, scene);
  const step = (by: 1 | -1) => {
    if (!found || !control.current) {
      return;
    }
    const next = found.next(control.current.selected, by);
    if (next >= 0) {
      control.current.select(next);
    }
  };
  const inRange = (position: number) => position >= 0 && position < flame.layout.node.length;
  const measure = (amount: number) =>
    isObjects(choices.value) ? formatCount(amount) : formatBytes(amount);

  return (
    <div className="flame">
      <div className="flame-bar">
        <Breadcrumb
          report={report}
          flame={flame}
          focused={inRange(focused) ? focused : 0}
          choices={choices}
          focus={(position) => control.current?.focus(position)}
        />
        {search !== "" && <Found found={found} step={step} />}
      </div>
      {base && (
        <DifferenceBar
          report={report}
          flame={flame}
          snapshot={snapshot}
          base={base}
          choices={choices}
          choose={choose}
        />
      )}
      <div className="flame-body">
        <Surface
          elements={elements}
          name={describe(choices)}
          empty={flame.width <= 0 ? emptyWords(report, choices, base !== null) : null}
        />
        <FlameDetails
          report={report}
          snapshot={snapshot}
          rows={rows}
          flame={flame}
          position={inRange(selected) ? selected : -1}
          choices={choices}
          zoom={() => control.current?.focus(selected)}
          close={() => control.current?.select(-1)}
        />
      </div>
      {inRange(hover.position) && (
        <Tooltip report={report} flame={flame} hover={hover} measure={measure} choices={choices} />
      )}
    </div>
  );
}

/** The tree to draw, its colours, and the search matches (null without a search). */
function useFlame(
  {
    report,
    snapshot,
    base,
    rows,
    baseRows,
    choices,
  }: FlamePanelProps & { snapshot: ProfileSnapshot },
  search: string,
) {
  const { tables } = report;
  const { value, reversed, differenceWidth, colourMode } = choices;
  const flame = useMemo(
    () =>
      buildFlameGraph(
        tables,
        {
          after: { snapshot, rows },
          before: base && baseRows ? { snapshot: base, rows: baseRows } : null,
        },
        { value, reversed, differenceWidth },
      ),
    [tables, snapshot, rows, base, baseRows, value, reversed, differenceWidth],
  );
  const colour = useMemo(
    () => colourPositions(tables, flame, colourMode),
    [tables, flame, colourMode],
  );
  const found = useMemo(() => {
    if (search === "") {
      return null;
    }
    const frames = framesMatching(tables, search);
    return (
      frames &&
      findMatches(
        flame.layout,
        (position) => uint32At(flame.graph.frame, uint32At(flame.layout.node, position)),
        frames,
      )
    );
  }, [tables, flame, search]);
  return { flame, colour, found };
}

/** Number of search matches, with buttons that step through them. `found` is null if the pattern is invalid. */
function Found({ found, step }: { found: SearchMatches | null; step: (by: 1 | -1) => void }) {
  return (
    <span className="found" role="status">
      {found === null
        ? "invalid pattern"
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
          <button type="button" className="quiet" onClick={() => step(1)} aria-label="Next match">
            ↓
          </button>
        </>
      )}
    </span>
  );
}

interface SurfaceProps {
  elements: ReturnType<typeof useFlameCanvas>["elements"];
  /** Name of what the graph shows. */
  name: string;
  /** Why there is nothing to draw; null if there is something. */
  empty: string | null;
}

function Surface({ elements, name, empty }: SurfaceProps) {
  return (
    <div className="flame-scroller" ref={elements.scroller}>
      <div ref={elements.spacer}>
        {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: navigated with the arrow keys */}
        <canvas
          ref={elements.surface}
          className="flame-canvas"
          data-testid="flame"
          tabIndex={0}
          role="application"
          aria-label={`Flame graph of ${name}; arrow keys navigate, Enter zooms in, Escape zooms out`}
          aria-describedby="flame-selected"
        />
      </div>
      {empty !== null && <p className="empty over">{empty}</p>}
    </div>
  );
}
