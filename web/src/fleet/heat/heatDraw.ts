/**
 * Paints the heat map. The cells are painted once, a pixel each, on a canvas of their own; each later frame enlarges it in
 * one step and adds what the pointer changes.
 */
import { formatWallClock } from "../../format/numbers.js";
import {
  areDays,
  type HeatBox,
  type HeatCell,
  type HeatRows,
  LABELLED_ROW,
  rowName,
  timeTicks,
} from "./heatRows.js";

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
/** Under the rows. */
export const AXIS_HEIGHT = 24;
const TICK_WIDTH = 96;
/** Of a name from its row. */
const FARTHEST_LABEL = 60;
const COLOURS = 256;
/** Variables of the style, from nothing to all. */
const STOPS = ["--heat-0", "--heat-1", "--heat-2", "--heat-3", "--heat-4"] as const;

export interface HeatStyle {
  /** `0xaabbggrr` by share, as in the memory of a picture. */
  readonly colours: Uint32Array;
  readonly ink: string;
  readonly faint: string;
  readonly grid: string;
  readonly panel: string;
  readonly danger: string;
  readonly selection: string;
}

export function heatStyle(element: Element): HeatStyle {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    colours: ramp(STOPS.map((name) => of(name))),
    ink: of("--ink"),
    faint: of("--ink-3"),
    grid: of("--grid"),
    panel: of("--panel"),
    danger: of("--danger"),
    selection: of("--selection"),
  };
}

/** Colours between the stops, which are written as #rrggbb. */
function ramp(stops: readonly string[]): Uint32Array {
  const parts = stops.map((stop) =>
    [1, 3, 5].map((at) => Number.parseInt(stop.slice(at, at + 2), 16)),
  );
  return Uint32Array.from({ length: COLOURS }, (_, index) => {
    const at = (index / (COLOURS - 1)) * (parts.length - 1);
    const low = Math.min(Math.floor(at), parts.length - 2);
    const [r = 0, g = 0, b = 0] = [0, 1, 2].map((channel) => {
      const [from, to] = [parts[low]?.[channel] ?? 0, parts[low + 1]?.[channel] ?? 0];
      return Math.round(from + (to - from) * (at - low));
    });
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

/** The cells, a pixel each; those without a value are transparent. null: there are none. */
export function cellPicture(
  { rows, whole, steps }: HeatRows,
  { colours }: HeatStyle,
): HTMLCanvasElement | null {
  const picture = document.createElement("canvas");
  picture.width = steps;
  picture.height = rows.length;
  const context = picture.getContext("2d");
  if (context === null || steps === 0) {
    return null;
  }
  const image = context.createImageData(steps, rows.length);
  const pixels = new Uint32Array(image.data.buffer);
  rows.forEach(({ values }, row) => {
    const all = whole[row] ?? 1;
    values.forEach((value, step) => {
      if (value !== null) {
        const share = Math.min(1, Math.max(0, value / all));
        pixels[row * steps + step] = colours[Math.round(share * (COLOURS - 1))] ?? 0;
      }
    });
  });
  context.putImageData(image, 0, 0);
  return picture;
}

export interface HeatFrame {
  readonly shown: HeatRows;
  readonly box: HeatBox;
  readonly picture: HTMLCanvasElement;
  readonly style: HeatStyle;
  readonly startMs: number;
  readonly stepMs: number;
  readonly cell: HeatCell | null;
  /** Dragged over: CSS pixels. */
  readonly dragged: readonly [number, number] | null;
}

export function drawHeat(canvas: HTMLCanvasElement, frame: HeatFrame): void {
  const context = canvas.getContext("2d");
  if (context === null) {
    return;
  }
  const { shown, box, picture, style, dragged } = frame;
  const { left, top, width, rowHeight } = box;
  const height = rowHeight * shown.rows.length;
  const scale = devicePixelRatio;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = FONT;
  context.imageSmoothingEnabled = false;
  context.fillStyle = style.grid;
  context.fillRect(left, top, width, height);
  context.drawImage(picture, left, top, width, height);
  if (rowHeight >= LABELLED_ROW) {
    context.fillStyle = style.panel;
    for (let row = 1; row < shown.rows.length; row++) {
      context.fillRect(left, top + row * rowHeight - 1, width, 1);
    }
  }
  drawNames(context, frame);
  drawTimes(context, frame, top + height);
  if (dragged !== null) {
    context.fillStyle = style.selection;
    context.fillRect(Math.min(...dragged), top, Math.abs(dragged[1] - dragged[0]), height);
  }
  drawCell(context, frame, height);
}

/** All names where rows are high enough; otherwise those of odd rows, one below the other where they are close. */
function drawNames(
  context: CanvasRenderingContext2D,
  { shown, box, style, cell }: HeatFrame,
): void {
  const { left, top, rowHeight } = box;
  const isLabelled = rowHeight >= LABELLED_ROW;
  context.textAlign = "right";
  context.textBaseline = "middle";
  let freeFrom = Number.NEGATIVE_INFINITY;
  shown.rows.forEach((row, index) => {
    const isOdd = row.odd !== undefined;
    const y = top + (index + 0.5) * rowHeight;
    if (isOdd) {
      context.fillStyle = style.danger;
      const half = Math.max(2, Math.min(4, rowHeight / 2));
      context.beginPath();
      context.moveTo(left - 3, y);
      context.lineTo(left - 9, y - half);
      context.lineTo(left - 9, y + half);
      context.fill();
    }
    const labelY = isLabelled ? y : Math.max(y, freeFrom);
    if (isLabelled || (isOdd && labelY - y <= FARTHEST_LABEL)) {
      context.fillStyle = isOdd ? style.danger : index === cell?.row ? style.ink : style.faint;
      context.fillText(shortened(context, rowName(row), left - 16), left - 13, labelY);
      freeFrom = labelY + LABELLED_ROW;
    }
  });
}

/** The end of a name is what differs. */
function shortened(context: CanvasRenderingContext2D, name: string, width: number): string {
  if (context.measureText(name).width <= width) {
    return name;
  }
  for (let from = 1; from < name.length; from++) {
    const text = `…${name.slice(from)}`;
    if (context.measureText(text).width <= width) {
      return text;
    }
  }
  return "";
}

function drawTimes(
  context: CanvasRenderingContext2D,
  { box: { left, width }, shown, style, startMs, stepMs }: HeatFrame,
  y: number,
): void {
  const endMs = startMs + stepMs * shown.steps;
  const ticks = timeTicks(startMs, endMs, Math.max(2, Math.floor(width / TICK_WIDTH)));
  const isOfDays = areDays(ticks);
  context.fillStyle = style.faint;
  context.textAlign = "center";
  context.textBaseline = "top";
  let freeFrom = Number.NEGATIVE_INFINITY;
  for (const at of ticks) {
    const x = left + ((at - startMs) / (endMs - startMs)) * width;
    const text = formatWallClock(at, true);
    const shownText = isOfDays ? text.slice(0, 5) : text;
    const half = context.measureText(shownText).width / 2;
    context.fillRect(Math.round(x), y, 1, 4);
    const centre = Math.min(Math.max(x, left + half), left + width - half);
    if (centre - half >= freeFrom) {
      context.fillText(shownText, centre, y + 7);
      freeFrom = centre + half + 8;
    }
  }
}

function drawCell(
  context: CanvasRenderingContext2D,
  { shown, box, style, cell }: HeatFrame,
  height: number,
): void {
  if (cell === null) {
    return;
  }
  const { left, top, width, rowHeight } = box;
  const stepWidth = width / shown.steps;
  const [x, y] = [left + cell.step * stepWidth, top + cell.row * rowHeight];
  context.strokeStyle = style.ink;
  context.lineWidth = 1;
  context.globalAlpha = 0.35;
  context.strokeRect(x + stepWidth / 2, top, 0, height);
  context.globalAlpha = 1;
  context.strokeRect(left - 0.5, y - 0.5, width + 1, rowHeight + 1);
  const wide = Math.max(stepWidth, 3);
  context.lineWidth = 2;
  context.strokeRect(x + (stepWidth - wide) / 2 - 1, y - 1, wide + 2, rowHeight + 2);
}
