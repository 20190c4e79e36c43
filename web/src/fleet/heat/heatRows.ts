/** The rows of the heat map: their order, what a colour means, and which cell is at a place. */
import type { Bytes, TimeMs } from "../../../../src/model/base/units.js";
import type { HeatMapAnswer, HeatMapRow } from "../../../../src/model/wire/heat_map.js";

/** What the darkest colour stands for: the limit of each instance, or the largest value of all. */
export type HeatScale = "limit" | "largest";

/** Fewer instances are easier to compare as lines. */
export const FEWEST_ROWS = 8;

export const HEAT_ORDERS = {
  peak: "Highest value",
  newest: "Newest value",
  growth: "Growth",
  start: "Start",
} as const;
export type HeatOrder = keyof typeof HEAT_ORDERS;

export interface HeatRows {
  readonly rows: readonly HeatMapRow[];
  readonly scale: HeatScale;
  /** Of each row: the bytes that are a share of 1. */
  readonly whole: readonly Bytes[];
  readonly steps: number;
  readonly odd: number;
}

/** Limits are a scale only if all instances have one. */
export function hasLimits({ instances }: HeatMapAnswer): boolean {
  return instances.length > 0 && instances.every(({ limitBytes }) => limitBytes > 0);
}

export function heatRows(answer: HeatMapAnswer, scale: HeatScale, order: HeatOrder): HeatRows {
  const reported = answer.instances.filter(({ values }) => values.some((value) => value !== null));
  const largest = Math.max(1, ...reported.map(peakOf));
  const wholeOf = ({ limitBytes }: HeatMapRow) => (scale === "limit" ? limitBytes : largest);
  const rankOf = (row: HeatMapRow): number => {
    switch (order) {
      case "peak":
        return peakOf(row) / wholeOf(row);
      case "newest":
        return newestOf(row.values) / wholeOf(row);
      case "growth":
        return (
          (newestOf(row.values) - (row.values.find((value) => value !== null) ?? 0)) / wholeOf(row)
        );
      case "start":
        return row.startedMs;
    }
  };
  const rows = reported
    .map((row) => ({ row, rank: rankOf(row) }))
    .sort((a, b) => b.rank - a.rank || (a.row.stream < b.row.stream ? -1 : 1))
    .map(({ row }) => row);
  return {
    ...{ rows, scale, whole: rows.map(wholeOf) },
    steps: rows[0]?.values.length ?? 0,
    odd: rows.filter((row) => row.odd !== undefined).length,
  };
}

function peakOf({ values }: HeatMapRow): Bytes {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

function newestOf(values: HeatMapRow["values"]): Bytes {
  return values.findLast((value) => value !== null) ?? 0;
}

/** Names of rows are a pod, or the beginning of a stream's name. */
export function rowName({ pod, stream }: Pick<HeatMapRow, "pod" | "stream">): string {
  return pod === "" ? stream.slice(0, 8) : pod;
}

/** CSS pixels. */
export interface HeatBox {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly rowHeight: number;
}

/** Where the labels of single rows fit. */
export const LABELLED_ROW = 13;
const LARGEST_ROW = 20;
const USUAL_HEIGHT = 560;
/** A finger is less exact than a pointer. */
const LEAST_ROW = { fine: 2, coarse: 5 } as const;

/** Rows of whole pixels: they are all of the same height. */
export function heatBox(rows: number, width: number, pointer: keyof typeof LEAST_ROW): HeatBox {
  const rowHeight = Math.min(
    LARGEST_ROW,
    Math.max(LEAST_ROW[pointer], Math.floor(USUAL_HEIGHT / Math.max(1, rows))),
  );
  const left = width < 560 ? 84 : 132;
  return { left, top: 6, width: Math.max(1, width - left - 8), rowHeight };
}

export interface HeatCell {
  readonly row: number;
  readonly step: number;
}

/** The instance and the time of a cell, which stay the same when the next answer has other rows. */
export interface HeatCursor {
  readonly stream: string;
  readonly timeMs: TimeMs;
}

type HeatTimes = Pick<HeatMapAnswer, "startMs" | "stepMs">;

export function cursorAt(
  { rows }: HeatRows,
  { startMs, stepMs }: HeatTimes,
  cell: HeatCell | null,
): HeatCursor | null {
  const stream = cell === null ? undefined : rows[cell.row]?.stream;
  return cell === null || stream === undefined
    ? null
    : { stream, timeMs: startMs + (cell.step + 0.5) * stepMs };
}

/** Where the instance of a cursor is now, at the step that is nearest to its time; null: it has no row. */
export function cellOf(
  { rows, steps }: HeatRows,
  { startMs, stepMs }: HeatTimes,
  cursor: HeatCursor | null,
): HeatCell | null {
  const row = cursor === null ? -1 : rows.findIndex(({ stream }) => stream === cursor.stream);
  return cursor === null || row === -1
    ? null
    : { row, step: clamped(Math.floor((cursor.timeMs - startMs) / stepMs), steps) };
}

/** The cell at a place; beside the map, the nearest one. */
export function cellAt(
  { rows, steps }: HeatRows,
  { left, top, width, rowHeight }: HeatBox,
  x: number,
  y: number,
): HeatCell {
  return {
    row: clamped(Math.floor((y - top) / rowHeight), rows.length),
    step: clamped(Math.floor(((x - left) / width) * steps), steps),
  };
}

/** One step by the keyboard; null: another key. */
export function movedCell(
  { rows, steps }: HeatRows,
  cell: HeatCell | null,
  key: string,
): HeatCell | null {
  const { row, step } = cell ?? { row: 0, step: steps - 1 };
  const moves: Readonly<Record<string, HeatCell>> = {
    ArrowUp: { row: row - 1, step },
    ArrowDown: { row: row + 1, step },
    ArrowLeft: { row, step: step - 1 },
    ArrowRight: { row, step: step + 1 },
    PageUp: { row: row - 10, step },
    PageDown: { row: row + 10, step },
    Home: { row, step: 0 },
    End: { row, step: steps - 1 },
  };
  const moved = moves[key];
  if (moved === undefined) {
    return null;
  }
  return cell === null
    ? { row, step }
    : { row: clamped(moved.row, rows.length), step: clamped(moved.step, steps) };
}

function clamped(index: number, count: number): number {
  return Math.min(Math.max(index, 0), Math.max(0, count - 1));
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const TICKS = [
  ...[60_000, 300_000, 900_000, 1_800_000, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR],
  ...[DAY, 2 * DAY, 3 * DAY, 7 * DAY, 14 * DAY, 60 * DAY],
];

/** Round local times; `most` of them at most. */
export function timeTicks(startMs: TimeMs, endMs: TimeMs, most: number): TimeMs[] {
  const every = TICKS.find((ms) => (endMs - startMs) / ms <= most) ?? 365 * DAY;
  const midnight = new Date(startMs).setHours(0, 0, 0, 0);
  const ticks: TimeMs[] = [];
  for (let at = midnight; at <= endMs; at += every) {
    if (at >= startMs) {
      ticks.push(at);
    }
  }
  return ticks;
}

/** A label as wide as the distance of ticks needs: only the day between days. */
export function areDays(ticks: readonly TimeMs[]): boolean {
  return ticks.length > 1 && (ticks[1] as number) - (ticks[0] as number) >= DAY;
}
