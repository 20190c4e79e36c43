/** The treemap of retained sizes: click to zoom into a rectangle, Backspace to zoom out. */

import {
  type KeyboardEvent,
  type PointerEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { float64At, uint32At } from "../../../src/model/base/columns.js";
import { formatBytes, formatShare } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { useWidth } from "../widgets/useWidth.js";
import { drawMap } from "./drawMap.js";
import { layOut, tileAt } from "./mapLayout.js";
import { nameOf, type TreeView, typeOf } from "./treeView.js";

interface HeapMapProps {
  view: TreeView;
  theme: Theme;
  zoom: number;
  selected: number;
  /** Rows with objects of the selected type; null if no type is selected. */
  lit: ReadonlySet<number> | null;
  onOpen: (row: number) => void;
}

const WIDE_HEIGHT = 520;
const NARROW_HEIGHT = 340;
const NARROW_WIDTH = 600;

export function HeapMap({ view, theme, zoom, selected, lit, onOpen }: HeapMapProps) {
  const { tree } = view;
  const [holder, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState(-1);
  const height = width < NARROW_WIDTH ? NARROW_HEIGHT : WIDE_HEIGHT;
  const tiles = useMemo(() => layOut(view, zoom, width, height), [view, zoom, width, height]);

  useLayoutEffect(() => {
    if (canvas.current) {
      drawMap(canvas.current, view, tiles, { theme, selected, hovered, lit });
    }
  }, [view, tiles, theme, selected, hovered, lit]);

  const at = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return tileAt(tiles, event.clientX - box.left, event.clientY - box.top);
  };
  const pressed = (event: KeyboardEvent) => {
    const siblings = view.children(uint32At(tree.parent, selected));
    const place = siblings.indexOf(selected);
    const next =
      event.key === "ArrowDown"
        ? uint32At(view.children(selected), 0)
        : event.key === "ArrowRight"
          ? uint32At(siblings, place + 1)
          : event.key === "ArrowLeft"
            ? uint32At(siblings, place - 1)
            : event.key === "ArrowUp" || event.key === "Backspace" || event.key === "Escape"
              ? uint32At(tree.parent, selected)
              : undefined;
    if (next === undefined) {
      return;
    }
    event.preventDefault();
    onOpen(next);
  };
  const shown = hovered >= 0 ? hovered : selected;
  return (
    <div className="heap-map" ref={holder}>
      <canvas
        ref={canvas}
        data-testid="heap-map"
        data-tiles={tiles.length}
        tabIndex={0}
        role="img"
        aria-label={`Treemap of what ${nameOf(tree, zoom)} retains; the tree next to it shows the same data`}
        width={Math.round(width * devicePixelRatio)}
        height={Math.round(height * devicePixelRatio)}
        style={{ width, height }}
        onPointerMove={(event) => setHovered(at(event)?.row ?? -1)}
        onPointerLeave={() => setHovered(-1)}
        onClick={(event) => {
          const tile = at(event as unknown as PointerEvent);
          if (tile) {
            onOpen(tile.row);
          }
        }}
        onKeyDown={pressed}
      />
      <p className="heap-selected">
        <b>{nameOf(tree, shown)}</b>
        {typeOf(tree, shown) !== null && <span>{typeOf(tree, shown)}</span>}
        <span>
          {formatBytes(float64At(tree.retained, shown))},{" "}
          {formatShare(float64At(tree.retained, shown) / float64At(tree.retained, 0))} of all
        </span>
      </p>
    </div>
  );
}
