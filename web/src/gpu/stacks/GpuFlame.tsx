/** Live allocations at the chosen moment by stack, or their difference from another moment. A click zooms in. */

import { useEffect, useMemo, useRef, useState } from "react";
import { float64At, itemAt, uint32At } from "../../../../src/model/base/columns.js";
import { FlameCanvas } from "../../flame/flameCanvas.js";
import { flamePalette } from "../../flame/palette.js";
import { findMatches } from "../../flame/search.js";
import { formatBytes, formatShare, formatSignedBytes } from "../../format/numbers.js";
import type { Theme } from "../../theme/theme.js";
import { type GpuFlame as Flame, flameColours, flameOf, type Side } from "./gpuFlame.js";

interface Props {
  side: Side;
  base: Side | null;
  theme: Theme;
  search: string;
}

export function GpuFlame({ side, base, theme, search }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const surface = useRef<HTMLCanvasElement>(null);
  const canvas = useRef<FlameCanvas | null>(null);
  const [hover, setHover] = useState(-1);
  const [selected, setSelected] = useState(-1);
  const [focused, setFocused] = useState(0);
  const flame = useMemo(() => flameOf(side, base), [side, base]);
  const colour = useMemo(() => flameColours(flame), [flame]);
  const matches = useMemo(() => matchesOf(flame, search), [flame, search]);
  useEffect(() => {
    if (!scroller.current || !spacer.current || !surface.current) {
      return;
    }
    canvas.current = new FlameCanvas(scroller.current, spacer.current, surface.current, {
      onHover: setHover,
      onSelect: setSelected,
      onFocus: setFocused,
    });
    return () => canvas.current?.destroy();
  }, []);
  useEffect(() => {
    setHover(-1);
    setSelected(-1);
    setFocused(0);
    void flame;
  }, [flame]);
  useEffect(() => {
    canvas.current?.setScene({
      layout: flame.layout,
      colour,
      palette: flamePalette(theme),
      label: (position) => itemAt(flame.frames, uint32At(flame.layout.node, position)),
      matches,
      rootsBelow: false,
    });
  }, [flame, colour, theme, matches]);
  const shown = hover >= 0 ? hover : selected;
  const position = shown < flame.layout.node.length ? shown : -1;
  return (
    <div className="gpu-flame">
      <div className="flame-scroller" ref={scroller}>
        <div ref={spacer}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: navigated with the arrow keys */}
          <canvas
            ref={surface}
            className="flame-canvas"
            data-testid="flame"
            tabIndex={0}
            role="application"
            aria-label="Flame graph of live allocations at this moment; arrow keys navigate, Enter zooms in, Escape zooms out"
          />
        </div>
      </div>
      <p className="gpu-hint gpu-flame-says" aria-live="polite">
        {position >= 0 ? describe(flame, position) : "Click to zoom in, Escape to zoom out."}
        {focused > 0 && (
          <button type="button" className="quiet" onClick={() => canvas.current?.focus(0)}>
            Whole graph
          </button>
        )}
      </p>
    </div>
  );
}

function matchesOf({ frames, layout }: Flame, search: string) {
  const wanted = search.trim().toLowerCase();
  if (wanted === "") {
    return null;
  }
  const found = Uint8Array.from(frames, ({ name, place }) =>
    `${name} ${place}`.toLowerCase().includes(wanted) ? 1 : 0,
  );
  return findMatches(layout, (position) => uint32At(layout.node, position), found);
}

function describe({ frames, layout, bytes, before }: Flame, position: number): string {
  const node = uint32At(layout.node, position);
  const { name, place } = itemAt(frames, node);
  const amount =
    before === null
      ? `${formatBytes(float64At(bytes, node))}, ${formatShare(float64At(bytes, node) / (float64At(bytes, 0) || 1))}`
      : `${formatBytes(float64At(before, node))} in A, ${formatBytes(float64At(bytes, node))} in B: ${formatSignedBytes(float64At(bytes, node) - float64At(before, node))}`;
  return [name, place, amount].filter((part) => part !== "").join(" · ");
}
