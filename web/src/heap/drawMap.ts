/** Paints the treemap. */
import { float64At } from "../../../src/model/base/columns.js";
import { formatBytes } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { HEAD_HEIGHT, type Tile } from "./mapLayout.js";
import { nameOf, type TreeView, typeOf } from "./treeView.js";
import { typeColour } from "./typeColours.js";

interface MapStyle {
  readonly theme: Theme;
  readonly selected: number;
  readonly hovered: number;
  /** Other rows are dimmed; null: none are. */
  readonly lit: ReadonlySet<number> | null;
}

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const LEAST_TEXT_WIDTH = 34;
const LEAST_TEXT_HEIGHT = 15;

export function drawMap(
  canvas: HTMLCanvasElement,
  view: TreeView,
  tiles: readonly Tile[],
  { theme, selected, hovered, lit }: MapStyle,
): void {
  const context = canvas.getContext("2d");
  if (context === null) {
    return;
  }
  const scale = devicePixelRatio;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = FONT;
  context.textBaseline = "middle";
  const ink = theme === "light" ? "#17252e" : "#e8eff1";
  const line = theme === "light" ? "#ffffff" : "#141b20";
  for (const tile of tiles) {
    const { row, x0, y0, x1, y1, headed } = tile;
    const type = typeOf(view.tree, row);
    const colour = typeColour(type, theme);
    context.globalAlpha = lit === null || lit.has(row) ? 1 : 0.22;
    context.fillStyle = line;
    context.fillRect(x0, y0, x1 - x0, y1 - y0);
    context.fillStyle = headed ? colour.ground : colour.fill;
    context.fillRect(x0, y0, x1 - x0, y1 - y0);
    context.globalAlpha = 1;
    const width = x1 - x0 - 8;
    if (width >= LEAST_TEXT_WIDTH && y1 - y0 >= LEAST_TEXT_HEIGHT) {
      context.fillStyle = ink;
      const size = formatBytes(float64At(view.tree.retained, row));
      const name = nameOf(view.tree, row);
      const oneLine = headed || y1 - y0 < 2 * LEAST_TEXT_HEIGHT;
      const top = y0 + (headed ? HEAD_HEIGHT : Math.min(y1 - y0, HEAD_HEIGHT)) / 2;
      context.fillText(fitted(context, oneLine ? `${name}  ${size}` : name, width), x0 + 4, top);
      if (!oneLine) {
        context.globalAlpha = 0.75;
        context.fillText(fitted(context, size, width), x0 + 4, top + LEAST_TEXT_HEIGHT - 1);
        context.globalAlpha = 1;
      }
    }
  }
  context.strokeStyle = ink;
  for (const [row, thickness] of [
    [hovered, 1],
    [selected, 2],
  ] as const) {
    const tile = tiles.find((one) => one.row === row);
    if (tile !== undefined && tile.depth > 0) {
      outline(context, tile, thickness);
    }
  }
}

function outline(context: CanvasRenderingContext2D, tile: Tile, thickness: number): void {
  context.lineWidth = thickness;
  const inset = thickness / 2;
  context.strokeRect(
    tile.x0 + inset,
    tile.y0 + inset,
    tile.x1 - tile.x0 - thickness,
    tile.y1 - tile.y0 - thickness,
  );
}

function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  // No glyph is narrower than two pixels, so the rest of a long name need not be measured.
  let shown = text.slice(0, Math.ceil(width / 2));
  if (shown.length === text.length && context.measureText(shown).width <= width) {
    return text;
  }
  let low = 0;
  let high = shown.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${shown.slice(0, middle)}…`).width <= width) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  shown = shown.slice(0, low);
  return shown.length < 2 ? "" : `${shown}…`;
}
