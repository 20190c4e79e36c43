/** What every command's text is made of: sizes, colours, tables, bars; nothing of what it means. */
import stringWidth from "string-width";
import { oneLine } from "../../model/errors.js";
import type { Bytes, Millis } from "../../model/units.js";

/** Where text goes: how wide it is, and whether it takes colour. */
export interface Screen {
  readonly columns: number;
  readonly paint: Paint;
  line(text?: string): void;
}

export type Paint = Readonly<Record<keyof typeof SGR, (text: string) => string>>;

// Only the 16 colours that every terminal theme defines, so that text stays readable on all of them.
const SGR = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

const PLAIN_COLUMNS = 80;
const WIDEST = 160;

/** The screen behind a stream: 80 plain columns when it is no terminal. */
export function screenOf(stream: NodeJS.WriteStream): Screen {
  return screenInto(stream, (line) => void stream.write(`${line}\n`));
}

/** A screen as wide and as coloured as the stream's, whose lines go elsewhere first. */
export function screenInto(stream: NodeJS.WriteStream, take: (line: string) => void): Screen {
  const terminal = stream.isTTY === true;
  const columns = terminal && stream.columns > 0 ? stream.columns : PLAIN_COLUMNS;
  const noColour = process.env.NO_COLOR;
  const colour = terminal && (noColour === undefined || noColour === "") && stream.hasColors();
  return {
    columns: Math.max(40, Math.min(columns, WIDEST)),
    paint: paintFor(colour),
    line: (text = "") => take(text.replace(/ +$/, "")),
  };
}

export function paintFor(colour: boolean): Paint {
  const entries = Object.entries(SGR).map(([name, [on, off]]) => [
    name,
    (text: string) => (colour && text !== "" ? `\x1b[${on}m${text}\x1b[${off}m` : text),
  ]);
  return Object.fromEntries(entries) as Paint;
}

/** One line on stderr. */
export function printError(message: string): void {
  const { paint } = screenOf(process.stderr);
  process.stderr.write(`${paint.red("tidemark:")} ${oneLine(message)}\n`);
}

/** A remark of a command, on stderr. */
export function printNote(message: string): void {
  const { paint } = screenOf(process.stderr);
  process.stderr.write(`${paint.dim("tidemark:")} ${oneLine(message)}\n`);
}

export function printJson(document: object): void {
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}

// --- figures -----------------------------------------------------------------------------------

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Three significant digits: "0 B", "640 KiB", "1.21 GiB", "-12.0 MiB". */
export function formatBytes(bytes: Bytes): string {
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= (unit === 0 ? 1024 : 999.5) && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 ? 0 : digitsFor(value);
  const sign = bytes < 0 && Number(value.toFixed(digits)) !== 0 ? "-" : "";
  return `${sign}${value.toFixed(digits)} ${BYTE_UNITS[unit]}`;
}

/** "+1.20 MiB", "-3.00 KiB", "0 B". */
export function formatChange(bytes: Bytes): string {
  const text = formatBytes(bytes);
  return bytes > 0 && !/^0 /.test(text) ? `+${text}` : text;
}

function digitsFor(value: number): number {
  return value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
}

/** "1,204"; from a hundred thousand on "120 k", "3.40 M". */
export function formatCount(count: number): string {
  const magnitude = Math.abs(count);
  if (magnitude < 99_999.5) {
    return Math.round(count).toLocaleString("en-US");
  }
  const steps: [number, string][] = [
    [1e3, "k"],
    [1e6, "M"],
    [1e9, "G"],
    [1e12, "T"],
  ];
  const [step, letter] = steps.findLast(([least]) => magnitude >= least * 0.9995) ?? [1e3, "k"];
  return `${(count / step).toFixed(digitsFor(magnitude / step))} ${letter}`;
}

/** "38 %", "<1 %", "0 %". */
export function formatShare(share: number): string {
  if (!Number.isFinite(share) || share <= 0) {
    return "0 %";
  }
  return share < 0.005 ? "<1 %" : `${Math.round(share * 100)} %`;
}

/** "850 ms", "12.4 s", "3 min 05 s", "1 h 02 min", "2 d 03 h". */
export function formatDuration(ms: Millis): string {
  if (ms < 999.5) {
    return `${Math.round(ms)} ms`;
  }
  if (ms < 59_950) {
    return `${(ms / 1000).toFixed(1)} s`;
  }
  const seconds = Math.round(ms / 1000);
  const pair = (large: number, largeName: string, small: number, smallName: string) =>
    `${large} ${largeName} ${String(small).padStart(2, "0")} ${smallName}`;
  if (seconds < 3600) {
    return pair(Math.floor(seconds / 60), "min", seconds % 60, "s");
  }
  const minutes = Math.round(seconds / 60);
  if (minutes < 24 * 60) {
    return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  }
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

// --- text --------------------------------------------------------------------------------------

/** Columns that text takes on a terminal, escapes not counted. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** Cuts at the end: "a long comma…". */
export function cutEnd(text: string, width: number): string {
  if (widthOf(text) <= width) {
    return text;
  }
  return width < 1 ? "" : `${takeColumns(Array.from(text), width - 1)}…`;
}

/** Keeps both ends, the end more: a path's file and line say most. "/srv/…/loader.py:41". */
export function cutMiddle(text: string, width: number): string {
  if (widthOf(text) <= width) {
    return text;
  }
  if (width < 5) {
    return cutEnd(text, width);
  }
  const parts = text.split("/");
  // Whole directories first: as many as fit before the file, behind what the path began with.
  for (let kept = parts.length - 2; kept >= 1; kept--) {
    const head = kept > 1 && parts[0] !== undefined && parts[0] !== "" ? `${parts[0]}/` : "";
    const whole = `${head}…/${parts.slice(-kept).join("/")}`;
    if (widthOf(whole) <= width) {
      return whole;
    }
    const bare = `…/${parts.slice(-kept).join("/")}`;
    if (widthOf(bare) <= width) {
      return bare;
    }
  }
  const head = Math.floor((width - 1) / 3);
  const characters = Array.from(text);
  const tail = takeColumns(characters.slice().reverse(), width - 1 - head);
  return `${takeColumns(characters, head)}…${Array.from(tail).reverse().join("")}`;
}

function takeColumns(characters: readonly string[], width: number): string {
  let taken = "";
  let used = 0;
  for (const character of characters) {
    used += widthOf(character);
    if (used > width) {
      break;
    }
    taken += character;
  }
  return taken;
}

export function padEnd(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

export function padStart(text: string, width: number): string {
  return " ".repeat(Math.max(0, width - widthOf(text))) + text;
}

/** Breaks a sentence into lines of at most `width` columns; a longer word stands alone, cut. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter((part) => part !== "")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (widthOf(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== "") {
      lines.push(line);
    }
    line = cutMiddle(word, width);
  }
  return line === "" ? lines : [...lines, line];
}

// --- pictures ----------------------------------------------------------------------------------

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** A horizontal bar of `width` columns, filled to `share` of 1. */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.max(0, Math.min(1, share)) * width * 8);
  // Something is never drawn as nothing.
  const drawn = share > 0 ? Math.max(1, eighths) : 0;
  return "█".repeat(Math.floor(drawn / 8)) + EIGHTHS[drawn % 8];
}

const LEVELS = "▁▂▃▄▅▆▇█";

/** Readings over time as one line of at most `width` columns: the highest reading of each column's
 * share of the time, so that a short peak stays to be seen. Gaps repeat the column before. */
export function sparkline(
  timesMs: ArrayLike<number>,
  values: ArrayLike<number>,
  width: number,
): string {
  const first = timesMs[0];
  const last = timesMs[timesMs.length - 1];
  if (first === undefined || last === undefined || width < 1) {
    return "";
  }
  const columns = new Array<number>(Math.min(width, timesMs.length)).fill(Number.NaN);
  for (let i = 0; i < timesMs.length; i++) {
    const value = values[i];
    if (value === undefined || !Number.isFinite(value)) {
      continue;
    }
    const share = last > first ? (timesMs[i] - first) / (last - first) : 0;
    const column = Math.min(columns.length - 1, Math.floor(share * columns.length));
    const before = columns[column];
    columns[column] = Number.isNaN(before) ? value : Math.max(before, value);
  }
  const highest = Math.max(...columns.filter((value) => !Number.isNaN(value)));
  let level = 0;
  return columns
    .map((value) => {
      if (!Number.isNaN(value)) {
        level = highest > 0 ? Math.min(7, Math.floor((value / highest) * 7.999)) : 0;
      }
      return LEVELS[level];
    })
    .join("");
}

// --- tables ------------------------------------------------------------------------------------

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Takes what the others leave over; its text is cut in the middle (or at its end). */
  readonly flexible?: "cutMiddle" | "cutEnd";
  readonly paint?: (text: string) => string;
}

/** Lines of a table: titles, then rows; the flexible column gives way to the screen's width. */
export function formatTable(
  screen: Screen,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string[] {
  const gap = 2;
  const indent = 2;
  const cells = rows.map((row) => row.map((cell) => oneLine(cell)));
  const widths = columns.map((column, index) =>
    Math.max(widthOf(column.title), ...cells.map((row) => widthOf(row[index] ?? ""))),
  );
  const flexible = columns.findIndex((column) => column.flexible !== undefined);
  if (flexible >= 0) {
    const others = widths.reduce((sum, width, index) => sum + (index === flexible ? 0 : width), 0);
    const left = screen.columns - indent - others - gap * (columns.length - 1);
    widths[flexible] = Math.max(8, Math.min(widths[flexible] ?? 0, left));
  }
  const cut = (text: string, index: number): string =>
    columns[index]?.flexible === "cutEnd"
      ? cutEnd(text, widths[index] ?? 0)
      : cutMiddle(text, widths[index] ?? 0);
  const align = (text: string, index: number): string =>
    columns[index]?.align === "right"
      ? padStart(text, widths[index] ?? 0)
      : padEnd(text, widths[index] ?? 0);
  const join = (parts: string[]): string => " ".repeat(indent) + parts.join(" ".repeat(gap));
  const titles = columns.map((column, index) => screen.paint.dim(align(column.title, index)));
  return [
    join(titles),
    ...cells.map((row) =>
      join(
        columns.map((column, index) => {
          const text = align(cut(row[index] ?? "", index), index);
          return column.paint ? column.paint(text) : text;
        }),
      ),
    ),
  ];
}
