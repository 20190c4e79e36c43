import { basename } from "node:path";
import type { ProcessRow } from "../../inspect/index.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
  formatSignedBytes,
} from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { Millis } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import { type Column, formatTable, type Screen, widthOf } from "../text/output.js";
import { commandText } from "./summary.js";

const CONTAINER_DIGITS = 12;
/** Below this width a row shows only the most important fields; the rest is in --json. */
const WIDE = 110;

interface Field extends Column {
  readonly show: boolean;
  /**
   * If the screen is too narrow, the field with the highest number is dropped first; a field without a number
   * stays.
   */
  readonly drop?: number;
  readonly text: (row: ProcessRow) => string;
}

/** Columns and titles that a list adds to those of every process list. */
interface ListShape {
  /** Whether there was an earlier reading, so that growth is meaningful. */
  readonly growth: boolean;
  /** Columns before the command. */
  readonly extra?: readonly Field[];
  /** Text before the command: the branches of a tree. */
  readonly indent?: (row: ProcessRow) => string;
}

export function printProcessList(
  screen: Screen,
  rows: readonly ProcessRow[],
  shown: {
    readonly leftOut: number;
    readonly unmatched: string | undefined;
    readonly sinceMs: Millis | null;
    readonly quiet: boolean;
  },
): void {
  if (rows.length === 0) {
    screen.line(screen.paint.dim(shown.unmatched ?? "no Python process is running here"));
    return;
  }
  const table = processTable(screen, rows, { growth: shown.sinceMs !== null });
  for (const line of table) {
    screen.line(line);
  }
  if (!shown.quiet) {
    printRemarks(screen, rows, { ...shown, titles: table[0] ?? "" });
  }
}

/** Lines: titles, then one for each row. */
export function processTable(
  screen: Screen,
  rows: readonly ProcessRow[],
  shape: ListShape,
): string[] {
  let fields = fieldsFor(screen, rows, shape).filter((field) => field.show);
  while (screen.cuts && widthBesides(fields, rows) + LEAST_COMMAND > screen.columns) {
    const first = Math.max(...fields.map((field) => field.drop ?? 0));
    if (first === 0) {
      break;
    }
    fields = fields.filter((field) => field.drop !== first);
  }
  return formatTable(
    screen,
    fields,
    rows.map((row) => fields.map((field) => field.text(row))),
  );
}

/** Columns reserved for the command before less important fields are added. */
const LEAST_COMMAND = 32;
const GAP = 2;

/** Width of all fields except the flexible one, including the gaps. */
function widthBesides(fields: readonly Field[], rows: readonly ProcessRow[]): number {
  return fields.reduce((sum, { title, text, flexible }) => {
    const widths = flexible === undefined ? [title, ...rows.map(text)].map(widthOf) : [0];
    return sum + GAP + Math.max(...widths);
  }, 0);
}

function fieldsFor(screen: Screen, rows: readonly ProcessRow[], shape: ListShape): Field[] {
  const { paint } = screen;
  const wide = !screen.cuts || screen.columns >= WIDE;
  const users = new Set(rows.map((row) => row.user));
  const contained = rows.some((row) => row.container !== "");
  return [
    { title: "PID", align: "right", show: true, text: (row) => String(row.pid) },
    {
      title: "USER",
      drop: 4,
      show: wide || users.size > 1,
      text: (row) => screen.cutEnd(oneLine(row.user), 10),
    },
    {
      title: "RSS",
      align: "right",
      paint: paint.bold,
      show: true,
      text: (row) => formatBytes(row.rssBytes),
    },
    { title: "PSS", drop: 9, align: "right", show: wide, text: (row) => known(row.pssBytes) },
    { title: "USS", drop: 5, align: "right", show: true, text: (row) => known(row.ussBytes) },
    {
      title: "GROWTH",
      align: "right",
      show: shape.growth,
      text: (row) => (row.growthBytes === 0 ? "-" : formatSignedBytes(row.growthBytes)),
    },
    {
      title: "PER HOUR",
      align: "right",
      drop: 1,
      show: rows.some(hasRate),
      text: (row) => (hasRate(row) ? formatGrowth(row.growthBytesPerHour ?? 0) : "-"),
    },
    {
      title: "MIN",
      align: "right",
      drop: 3,
      show: rows.some((row) => row.minRssBytes !== undefined),
      text: (row) => (row.minRssBytes === undefined ? "-" : formatBytes(row.minRssBytes)),
    },
    { title: "THR", drop: 8, align: "right", show: true, text: (row) => formatCount(row.threads) },
    {
      title: "CHILDREN",
      drop: 10,
      align: "right",
      show: wide && rows.some((row) => row.children > 0),
      text: (row) => (row.children === 0 ? "-" : formatCount(row.children)),
    },
    {
      title: "GPU",
      align: "right",
      show: rows.some((row) => row.gpuBytes !== undefined),
      text: (row) => (row.gpuBytes ? formatBytes(row.gpuBytes) : "-"),
    },
    { title: "PYTHON", drop: 2, show: true, text: pythonText },
    {
      title: "CONTAINER",
      drop: 7,
      show: contained && wide,
      text: (row) => (row.container === "" ? "-" : row.container.slice(0, CONTAINER_DIGITS)),
    },
    {
      title: "ATTACH",
      drop: 6,
      show: wide || rows.some((row) => !row.attach.ok),
      text: (row) => (row.attach.ok ? "yes" : "no"),
    },
    ...(shape.extra ?? []),
    {
      title: "COMMAND",
      flexible: "cutEnd",
      show: true,
      text: (row) =>
        (shape.indent?.(row) ?? "") + (wide ? wholeCommand(row.command) : commandText(row.command)),
    },
  ];
}

/** Whether growth was measured and exceeds its error. */
function hasRate({
  growthBytesPerHour,
  growthLowBytesPerHour: low = growthBytesPerHour,
  growthHighBytesPerHour: high = growthBytesPerHour,
}: ProcessRow): boolean {
  return low !== undefined && high !== undefined && (low > 0 || high < 0);
}

/** The program's name with its full arguments. */
function wholeCommand([program = "", ...rest]: readonly string[]): string {
  return [basename(program), ...rest].map(shellWord).join(" ");
}

/** "3.11.7", "3.13.0 debug", "3.14.1 free-threaded"; "static" if the executable contains the interpreter. */
function pythonText({ python, build }: ProcessRow): string {
  const words = [
    python === "" ? "?" : python,
    build.linking === "static" ? "static" : "",
    build.debug ? "debug" : "",
    build.freeThreaded ? "free-threaded" : "",
  ];
  return words.filter((word) => word !== "").join(" ");
}

function printRemarks(
  screen: Screen,
  rows: readonly ProcessRow[],
  shown: { readonly leftOut: number; readonly sinceMs: Millis | null; readonly titles: string },
): void {
  const remarks = [
    shown.leftOut > 0 ? `${formatCount(shown.leftOut)} more` : "",
    legend(shown.titles, shown.sinceMs),
    ...unwaited(rows),
    ...refusals(rows),
  ].filter((remark) => remark !== "");
  if (remarks.length > 0) {
    screen.line();
  }
  for (const line of remarks.flatMap((remark) => screen.wrap(oneLine(remark), 2))) {
    screen.line(`  ${screen.paint.dim(line)}`);
  }
}

/** The meaning of the growth columns that are shown. */
function legend(titles: string, sinceMs: Millis | null): string {
  const since =
    sinceMs === null ? "" : ` since the last tidemark ps, ${formatDuration(sinceMs)} ago`;
  return [
    titles.includes("GROWTH") ? `GROWTH: change of RSS${since}` : "",
    titles.includes("PER HOUR")
      ? "PER HOUR: the rate of that change, or of the growth in the recording in progress"
      : "",
    titles.includes("MIN") ? "MIN: the lowest RSS seen so far" : "",
  ]
    .filter((part) => part !== "")
    .join(" · ");
}

/** A process may be about to wait for one or two. */
const MANY_ENDED = 3;

/** One line for each process with children that ended and were not waited for. */
function unwaited(rows: readonly ProcessRow[]): string[] {
  return rows.flatMap(({ pid, endedChildren = 0 }) =>
    endedChildren >= MANY_ENDED
      ? `${formatCount(endedChildren)} children of ${pid} have ended and were never waited for (zombies): use subprocess.run(), or wait for each with Popen.wait() or os.waitpid()`
      : [],
  );
}

/** One line per reason, with the processes it applies to. */
function refusals(rows: readonly ProcessRow[]): string[] {
  const byReason = new Map<string, number[]>();
  for (const { pid, attach } of rows) {
    if (!attach.ok) {
      const text = attach.remedy === "" ? attach.reason : `${attach.reason}; ${attach.remedy}`;
      byReason.set(text, [...(byReason.get(text) ?? []), pid]);
    }
  }
  return [...byReason].map(([text, pids]) => {
    const named = pids.slice(0, 5).join(", ");
    return `cannot attach to ${named}${pids.length > 5 ? ` and ${pids.length - 5} more` : ""}: ${text}`;
  });
}

function known(bytes: number): string {
  return bytes > 0 ? formatBytes(bytes) : "?";
}
