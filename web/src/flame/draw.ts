/** Draws one frame of the flame graph: only visible rows, and only rectangles of at least a pixel. */
import { float64At, itemAt, uint8At, uint32At } from "../../../src/model/base/columns.js";
import { type FlameLayout, visitRow } from "./layout.js";
import type { SearchMatches } from "./search.js";

export const ROW_HEIGHT = 20;
const LABEL_PADDING = 5;
/** Narrower rectangles have no room for readable text. */
const LABEL_MIN_WIDTH = 26;

/** Colours as CSS text; rectangles refer to them by number. */
export interface FlamePalette {
  readonly fills: readonly string[];
  /** The same colours for rectangles that do not match a search. */
  readonly faded: readonly string[];
  readonly match: string;
  readonly text: string;
  readonly fadedText: string;
  readonly matchText: string;
  readonly outline: string;
  readonly background: string;
}

export interface FlameScene {
  readonly layout: FlameLayout;
  /** Number of the palette's fill, by position. */
  readonly colour: Uint8Array;
  readonly palette: FlamePalette;
  /** The text in a rectangle; the second part is drawn if it fits. */
  readonly label: (position: number) => { name: string; place: string };
  readonly matches: SearchMatches | null;
  /** Roots at the bottom (flame) rather than at the top (icicle). */
  readonly rootsBelow: boolean;
}

/** Sizes in CSS pixels; the view in units of the value. */
export interface FlameView {
  start: number;
  end: number;
  scrollTop: number;
  width: number;
  height: number;
  selected: number;
  hovered: number;
}

export interface FlameFont {
  readonly css: string;
  /** Width of one character; the font is monospaced. */
  readonly characterWidth: number;
}

/** Height of a whole layout in CSS pixels. */
export function layoutHeight(layout: FlameLayout): number {
  return layout.rows * ROW_HEIGHT;
}

/** Top edge of a row within the whole layout, CSS pixels. */
export function rowTop(scene: FlameScene, view: FlameView, row: number): number {
  const height = Math.max(layoutHeight(scene.layout), view.height);
  return scene.rootsBelow ? height - (row + 1) * ROW_HEIGHT : row * ROW_HEIGHT;
}

/** The row at a height within the whole layout, in CSS pixels; may be outside it. */
export function rowAt(scene: FlameScene, view: FlameView, y: number): number {
  const height = Math.max(layoutHeight(scene.layout), view.height);
  return Math.floor((scene.rootsBelow ? height - y : y) / ROW_HEIGHT);
}

/** Draws and returns the number of rectangles drawn. */
export function drawFlame(
  context: CanvasRenderingContext2D,
  scene: FlameScene,
  view: FlameView,
  font: FlameFont,
): number {
  const { layout, palette } = scene;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, view.width, view.height);
  const unitsPerPixel = (view.end - view.start) / view.width;
  if (!(unitsPerPixel > 0) || layout.rows === 0) {
    return 0;
  }

  const visibleRows = [
    rowAt(scene, view, view.scrollTop),
    rowAt(scene, view, view.scrollTop + view.height - 1),
  ];
  const picture: Picture = {
    context,
    scene,
    view,
    unitsPerPixel,
    firstRow: Math.max(0, Math.min(...visibleRows)),
    lastRow: Math.min(layout.rows - 1, Math.max(...visibleRows)),
    labels: [],
  };
  let rectangles = 0;
  for (let row = picture.firstRow; row <= picture.lastRow; row++) {
    rectangles += drawRow(picture, row);
  }
  drawLabels(picture, font);
  drawOutline(picture, view.hovered, 1);
  drawOutline(picture, view.selected, 2);
  return rectangles;
}

interface Picture {
  readonly context: CanvasRenderingContext2D;
  readonly scene: FlameScene;
  readonly view: FlameView;
  readonly unitsPerPixel: number;
  readonly firstRow: number;
  readonly lastRow: number;
  /** Rectangles with room for text; drawn after all rows. */
  readonly labels: { position: number; x: number; y: number; width: number }[];
}

/** Draws one row and returns the number of its rectangles. */
function drawRow({ context, scene, view, unitsPerPixel, labels }: Picture, row: number): number {
  const { layout } = scene;
  const y = rowTop(scene, view, row) - view.scrollTop;
  let rectangles = 0;
  let runStart = 0;
  let runEnd = -1;
  let runFill = "";
  const flushRun = () => {
    if (runEnd < 0) {
      return;
    }
    context.fillStyle = runFill;
    context.fillRect(runStart, y, Math.max(runEnd - runStart, 1), ROW_HEIGHT - 1);
    rectangles++;
    runEnd = -1;
  };
  visitRow(layout, row, { start: view.start, end: view.end, unitsPerPixel }, (from, to) => {
    const x = Math.max((float64At(layout.start, from) - view.start) / unitsPerPixel, 0);
    const right = Math.min(
      (float64At(layout.end, to - 1) - view.start) / unitsPerPixel,
      view.width,
    );
    const fill = fillOf(scene, from, to);
    const width = right - x;
    if (width < 3) {
      // Neighbours of the same colour that are too thin for a gap are merged into one rectangle.
      if (fill === runFill && runEnd >= 0 && x - runEnd < 1) {
        runEnd = Math.max(right, x + 1);
      } else {
        flushRun();
        runStart = x;
        runEnd = Math.max(right, x + 1);
        runFill = fill;
      }
      return;
    }
    flushRun();
    context.fillStyle = fill;
    context.fillRect(x, y, width - 1, ROW_HEIGHT - 1);
    rectangles++;
    if (width >= LABEL_MIN_WIDTH) {
      labels.push({ position: from, x, y, width });
    }
  });
  flushRun();
  return rectangles;
}

function fillOf({ matches, palette, colour }: FlameScene, from: number, to: number): string {
  if (matches === null) {
    return itemAt(palette.fills, uint8At(colour, from));
  }
  return matches.countBetween(from, to) > 0
    ? palette.match
    : itemAt(palette.faded, uint8At(colour, from));
}

function drawLabels({ context, scene, labels }: Picture, font: FlameFont): void {
  const { palette, matches } = scene;
  context.font = font.css;
  context.textBaseline = "middle";
  for (const { position, x, y, width } of labels) {
    const matched = matches !== null && matches.countBetween(position, position + 1) > 0;
    context.fillStyle =
      matches === null ? palette.text : matched ? palette.matchText : palette.fadedText;
    const room = Math.floor((width - 2 * LABEL_PADDING) / font.characterWidth);
    const { name, place } = scene.label(position);
    const middle = y + ROW_HEIGHT / 2;
    context.fillText(shortened(name, room), x + LABEL_PADDING, middle);
    if (place !== "" && room >= name.length + place.length + 2) {
      context.globalAlpha = 0.62;
      context.fillText(place, x + LABEL_PADDING + (name.length + 2) * font.characterWidth, middle);
      context.globalAlpha = 1;
    }
  }
}

function drawOutline(picture: Picture, position: number, thickness: number): void {
  const { context, scene, view, unitsPerPixel } = picture;
  const { layout, palette } = scene;
  if (position < 0) {
    return;
  }
  const row = visibleRowOf(picture, position);
  if (row < 0) {
    return;
  }
  const left = Math.max((float64At(layout.start, position) - view.start) / unitsPerPixel, 0);
  const right = Math.min(
    (float64At(layout.end, position) - view.start) / unitsPerPixel,
    view.width,
  );
  if (right < 0 || left > view.width) {
    return;
  }
  context.strokeStyle = palette.outline;
  context.lineWidth = thickness;
  const y = rowTop(scene, view, row) - view.scrollTop;
  const inset = thickness / 2;
  context.strokeRect(
    left + inset,
    y + inset,
    Math.max(right - left - 1, 2) - thickness,
    ROW_HEIGHT - 1 - thickness,
  );
}

function visibleRowOf({ scene, firstRow, lastRow }: Picture, position: number): number {
  const { rowStart } = scene.layout;
  for (let row = firstRow; row <= lastRow; row++) {
    if (position >= uint32At(rowStart, row) && position < uint32At(rowStart, row + 1)) {
      return row;
    }
  }
  return -1;
}

function shortened(word: string, room: number): string {
  if (word.length <= room) {
    return word;
  }
  return room < 2 ? "" : `${word.slice(0, room - 1)}…`;
}
