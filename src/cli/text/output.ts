/** The parts of every command's text: colours, columns, tables, bars; numbers come from src/model/base/numbers.ts. */
import stringWidth from "fast-string-width";
import { oneLine } from "../../model/errors/errors.js";
import { columnsOf, drawableColumns } from "./columns.js";

/** Where text is printed: a terminal with a width, or a file or pipe, where nothing is cut or wrapped. */
export interface Screen {
  /** Columns of a line; Infinity if unlimited. */
  readonly columns: number;
  /** Columns for charts and bars; always finite. */
  readonly pictureColumns: number;
  /** If false, names and paths are not cut, and each record is one line. */
  readonly cuts: boolean;
  readonly paint: Paint;
  line(text?: string): void;
  /** Wraps the sentence into lines that leave `indent` columns free. */
  wrap(text: string, indent: number): string[];
  /** The text, cut to `width` columns if this screen cuts. */
  cutEnd(text: string, width: number): string;
  cutMiddle(text: string, width: number): string;
}

export type Paint = Readonly<Record<keyof typeof SGR, (text: string) => string>>;

// Only the 16 colours that every terminal theme defines, so that text is readable in all of them.
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

/** The screen of a stream. If it is not a terminal, sentences are wrapped only if COLUMNS is set. */
export function screenOf(stream: NodeJS.WriteStream): Screen {
  return screenInto(stream, (line) => void stream.write(`${line}\n`));
}

/** A screen with the stream's width and colours that collects its lines instead of printing them. */
export function screenInto(stream: NodeJS.WriteStream, take: (line: string) => void): Screen {
  const terminal = stream.isTTY === true;
  const noColour = process.env.NO_COLOR;
  const colour = terminal && (noColour === undefined || noColour === "") && stream.hasColors();
  return makeScreen({ columns: columnsOf(stream), cuts: terminal, colour }, take);
}

/** A screen with a given width. */
export function makeScreen(
  { columns, cuts, colour }: { columns: number; cuts: boolean; colour: boolean },
  take: (line: string) => void,
): Screen {
  return {
    columns,
    pictureColumns: drawableColumns(columns),
    cuts,
    paint: paintFor(colour),
    line: (text = "") => take(text.replace(/ +$/, "")),
    wrap: (text, indent) => wrap(text, columns - indent, cuts ? cutMiddle : undefined),
    cutEnd: (text, width) => (cuts ? cutEnd(text, width) : text),
    cutMiddle: (text, width) => (cuts ? cutMiddle(text, width) : text),
  };
}

function paintFor(colour: boolean): Paint {
  const entries = Object.entries(SGR).map(([name, [on, off]]) => [
    name,
    (text: string) => (colour && text !== "" ? `\x1b[${on}m${text}\x1b[${off}m` : text),
  ]);
  return Object.fromEntries(entries) as Paint;
}

/** A message may contain commands with several long paths, which users copy. */
const LONGEST_MESSAGE = 4000;

/** One line on stderr. */
export function printError(message: string): void {
  const { paint } = screenOf(process.stderr);
  process.stderr.write(`${paint.red("tidemark:")} ${oneLine(message, LONGEST_MESSAGE)}\n`);
}

/** Prints a note on stderr. */
export function printNote(message: string): void {
  const { paint } = screenOf(process.stderr);
  process.stderr.write(`${paint.dim("tidemark:")} ${oneLine(message, LONGEST_MESSAGE)}\n`);
}

/** One line each. */
export function printNotes(messages: readonly string[]): void {
  for (const message of messages) {
    printNote(message);
  }
}

export function printJson(document: object): void {
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}

// --- text --------------------------------------------------------------------------------------

/** Columns that the text occupies on a terminal, without escape sequences. */
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

/** Keeps both ends, the end longer, since the file and line of a path matter most. "/srv/…/loader.py:41". */
export function cutMiddle(text: string, width: number): string {
  if (widthOf(text) <= width) {
    return text;
  }
  if (width < 5) {
    return cutEnd(text, width);
  }
  const parts = text.split("/");
  // Keeps whole directories: as many before the file as fit after the start of the path.
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

/** Wraps a sentence into lines of at most `width` columns; a longer word gets its own line, shortened by `cut`. */
export function wrap(
  text: string,
  width: number,
  cut: (word: string, width: number) => string = (word) => word,
): string[] {
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
    line = cut(word, width);
  }
  return line === "" ? lines : [...lines, line];
}

// --- pictures ----------------------------------------------------------------------------------

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** A horizontal bar of `width` columns, filled to `share` of 1. */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.max(0, Math.min(1, share)) * width * 8);
  // A value above zero is always visible.
  const drawn = share > 0 ? Math.max(1, eighths) : 0;
  return "█".repeat(Math.floor(drawn / 8)) + EIGHTHS[drawn % 8];
}

const LEVELS = "▁▂▃▄▅▆▇█";

/**
 * Draws readings over time as one line of at most `width` columns. Each column shows the highest reading of its
 * time, so that a short peak stays visible. A column without a time repeats the previous one; one whose readings are missing (NaN)
 * is blank.
 */
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
  const columns = new Array<number | undefined>(Math.min(width, timesMs.length)).fill(undefined);
  for (let i = 0; i < timesMs.length; i++) {
    const timeMs = timesMs[i] ?? Number.NaN;
    const value = values[i] ?? Number.NaN;
    const share = last > first ? (timeMs - first) / (last - first) : 0;
    const column = Math.min(columns.length - 1, Math.floor(share * columns.length));
    const before = columns[column] ?? Number.NaN;
    // The larger one, or the one that is there.
    columns[column] = value > before || Number.isNaN(before) ? value : before;
  }
  const highest = columns.reduce<number>((most, value = 0) => (value > most ? value : most), 0);
  let drawn = " ";
  return columns
    .map((value) => {
      if (value !== undefined) {
        const level = highest > 0 ? Math.min(7, Math.floor((value / highest) * 7.999)) : 0;
        drawn = LEVELS[level] ?? " ";
      }
      return drawn;
    })
    .join("");
}

// --- tables ------------------------------------------------------------------------------------

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Takes the remaining width; its text is cut in the middle (or at its end). */
  readonly flexible?: "cutMiddle" | "cutEnd";
  readonly paint?: (text: string) => string;
}

/** A table: titles, then rows; the flexible column shrinks to fit the terminal. */
export function printTable(
  screen: Screen,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): void {
  for (const line of formatTable(screen, columns, rows)) {
    screen.line(line);
  }
}

/** The lines of {@link printTable}. */
export function formatTable(
  screen: Screen,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string[] {
  const gap = 2;
  const indent = 2;
  const longest = screen.cuts ? undefined : Number.POSITIVE_INFINITY;
  const cells = rows.map((row) => row.map((cell) => oneLine(cell, longest)));
  const widths = columns.map((column, index) =>
    Math.max(widthOf(column.title), ...cells.map((row) => widthOf(row[index] ?? ""))),
  );
  const flexible = columns.findIndex((column) => column.flexible !== undefined);
  if (flexible >= 0 && screen.cuts) {
    const others = widths.reduce((sum, width, index) => sum + (index === flexible ? 0 : width), 0);
    const left = screen.columns - indent - others - gap * (columns.length - 1);
    widths[flexible] = Math.max(8, Math.min(widths[flexible] ?? 0, left));
  }
  const cut = (text: string, index: number): string =>
    columns[index]?.flexible === "cutEnd"
      ? screen.cutEnd(text, widths[index] ?? 0)
      : screen.cutMiddle(text, widths[index] ?? 0);
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
