import {
  formatBytes,
  formatCount,
  formatDuration,
  formatShare,
  formatSignedBytes,
} from "../../model/base/numbers.js";
import type {
  HeapDiffJson,
  HeapHolderJson,
  HeapJson,
} from "../../model/documents/heap/heap_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { bar, formatTable, type Screen } from "../text/output.js";

/** Of types, or of paths if those were requested. */
export const DEFAULT_ROWS = 15;
export const DEFAULT_CHANGES = 15;
const SHOWN_HOLDERS = 8;
/** Most columns of figures before a path, and the indent of continuation lines. */
const BEFORE_WAYS = 24;
const SHOWN_BOXED = 3;
const BAR_COLUMNS = 10;
/** A holder of less than this share of the heap is not listed. */
const LEAST_HOLDER_SHARE = 0.005;

interface HeapScreenOptions {
  readonly quiet: boolean;
  /** Number of types, or of paths if those were requested, that the list options left out. */
  readonly leftOut: number;
  /** Why none is listed although there are some. */
  readonly unmatched: string | undefined;
  /** With --values: the value of the object itself. */
  readonly value: string | null;
}

/** One screen: the types, the holders of most memory, and the requested paths. */
export function printHeap(screen: Screen, heap: HeapJson, options: HeapScreenOptions): void {
  const { paint } = screen;
  const { target, totals } = heap;
  const when = heap.paused
    ? heap.pauseMs > 0
      ? `at one moment, paused ${formatDuration(heap.pauseMs)}`
      : "a core file"
    : "while it ran";
  screen.line(
    `${paint.bold(`${formatCount(totals.objects)} objects, ${formatBytes(totals.bytes)}`)}  ` +
      paint.dim(`Python ${target.python}, process ${target.pid}, ${when}`),
  );
  screen.line();
  if (heap.paths !== undefined) {
    printPaths(screen, heap.paths, options);
  } else {
    printTypes(screen, heap, options);
    printHolders(screen, heap);
  }
  printBoxed(screen, heap);
  if (heap.garbage !== undefined && heap.garbage.objects > 0) {
    screen.line();
    screen.line(
      `  ${paint.yellow("Garbage")}  ${formatCount(heap.garbage.objects)} objects, ` +
        `${formatBytes(heap.garbage.bytes)}, referenced only by each other: gc.collect() frees them`,
    );
  }
  if (!options.quiet) {
    for (const limit of heap.limits) {
      for (const line of screen.wrap(oneLine(limit), 2)) {
        screen.line(`  ${paint.yellow(line)}`);
      }
    }
  }
}

function printTypes(
  screen: Screen,
  heap: HeapJson,
  { leftOut, unmatched }: HeapScreenOptions,
): void {
  const { paint } = screen;
  const graph = heap.holders !== undefined;
  const whole = Math.max(1, heap.totals.bytes);
  const table = formatTable(
    screen,
    [
      { title: "OBJECTS", align: "right" },
      { title: "BYTES", align: "right", paint: paint.bold },
      { title: "SHARE", align: "right", paint: paint.dim },
      ...(graph ? [{ title: "RETAINED", align: "right" as const, paint: paint.bold }] : []),
      { title: "", paint: paint.cyan },
      { title: "TYPE", flexible: "cutMiddle" as const },
    ],
    heap.types.map((row) => [
      formatCount(row.objects),
      formatBytes(row.bytes),
      formatShare(row.bytes / whole),
      ...(graph ? [formatBytes(row.retainedBytes ?? 0)] : []),
      bar((graph ? (row.retainedBytes ?? 0) : row.bytes) / whole, BAR_COLUMNS),
      row.type,
    ]),
  );
  for (const line of unmatched === undefined ? table : [paint.dim(`  ${unmatched}`)]) {
    screen.line(line);
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(leftOut)} more types`));
  }
}

function printHolders(screen: Screen, heap: HeapJson): void {
  const least = heap.totals.bytes * LEAST_HOLDER_SHARE;
  const rows = (heap.holders ?? [])
    .filter((holder) => holder.retainedBytes >= least)
    .slice(0, SHOWN_HOLDERS)
    .sort((a, b) => b.retainedBytes - a.retainedBytes);
  if (rows.length === 0) {
    return;
  }
  screen.line();
  const table = formatTable(
    screen,
    [
      { title: "RETAINED", align: "right", paint: screen.paint.bold },
      { title: "SHARE", align: "right", paint: screen.paint.dim },
      { title: "HELD BY", flexible: "cutMiddle" },
    ],
    rows.flatMap((holder) =>
      inLines(screen, holderText(holder), [
        formatBytes(holder.retainedBytes),
        formatShare(holder.retainedBytes / heap.totals.bytes),
      ]),
    ),
  );
  for (const line of table) {
    screen.line(line);
  }
}

/** A row whose last column, a path, continues in the rows below if it is long. */
function inLines(screen: Screen, way: string, figures: readonly string[]): string[][] {
  const lines = screen.wrap(oneLine(way), BEFORE_WAYS);
  return lines.map((line, n) =>
    n === 0 ? [...figures, line] : [...figures.map(() => ""), `  ${line}`],
  );
}

/** "module app -> running_stats: dict, 1.20 M entries". */
function holderText({ path, type, entries }: Omit<HeapHolderJson, "address">): string {
  const size = entries > 0 ? `, ${formatCount(entries)} entries` : "";
  return `${path.join(" -> ")}: ${type}${size}`;
}

function printPaths(
  screen: Screen,
  paths: NonNullable<HeapJson["paths"]>,
  { value, leftOut, unmatched }: HeapScreenOptions,
): void {
  const table = formatTable(
    screen,
    [
      { title: "OBJECTS", align: "right" },
      { title: "RETAINED", align: "right", paint: screen.paint.bold },
      { title: "PATH FROM A ROOT", flexible: "cutMiddle" },
    ],
    paths.flatMap(({ path, objects, retainedBytes, to }) =>
      inLines(screen, `${path.join(" -> ")} -> ${to}`, [
        formatCount(objects),
        formatBytes(retainedBytes),
      ]),
    ),
  );
  for (const line of unmatched === undefined ? table : [screen.paint.dim(`  ${unmatched}`)]) {
    screen.line(line);
  }
  if (leftOut > 0) {
    screen.line(
      screen.paint.dim(`  ${formatCount(leftOut)} more ${leftOut === 1 ? "path" : "paths"}`),
    );
  }
  if (value !== null) {
    screen.line();
    screen.line(`  ${oneLine(value)}`);
  }
}

function printBoxed(screen: Screen, { boxed = [] }: HeapJson): void {
  for (const { path, container, of, objects, bytes, arrayBytes } of boxed.slice(0, SHOWN_BOXED)) {
    screen.line();
    const text =
      `${path.join(" -> ")} is a ${container} of ${formatCount(objects)} ${of}: ` +
      `${formatBytes(bytes)}, as an array ${formatBytes(arrayBytes)}`;
    for (const line of screen.wrap(oneLine(text), 2)) {
      screen.line(`  ${screen.paint.yellow(line)}`);
    }
  }
}

interface HeapDiffScreenOptions {
  readonly quiet: boolean;
  readonly typesLeftOut: number;
  readonly holdersLeftOut: number;
  /** Why nothing is listed. */
  readonly empty: string | undefined;
}

/** Changes by type, then by holder. */
export function printHeapDiff(
  screen: Screen,
  document: HeapDiffJson,
  options: HeapDiffScreenOptions,
): void {
  const { paint } = screen;
  const { totals } = document;
  screen.line(`${paint.dim("A")}  ${paint.bold(oneLine(document.a.file))}`);
  screen.line(`${paint.dim("B")}  ${paint.bold(oneLine(document.b.file))}`);
  screen.line(
    `   ${formatCount(totals.objectsA)} → ${formatCount(totals.objectsB)} objects, ` +
      `${formatBytes(totals.bytesA)} → ${formatBytes(totals.bytesB)}`,
  );
  screen.line();
  const types = formatTable(
    screen,
    [
      { title: "GROWTH", align: "right", paint: paint.bold },
      { title: "OBJECTS", align: "right" },
      { title: "NOW", align: "right" },
      { title: "" },
      { title: "TYPE", flexible: "cutMiddle" },
    ],
    document.types.map((row) => [
      formatSignedBytes(row.growthBytes),
      signed(row.objectsB - row.objectsA),
      formatBytes(row.bytesB),
      row.change,
      row.type,
    ]),
  );
  for (const line of options.empty === undefined ? types : [paint.dim(`  ${options.empty}`)]) {
    screen.line(line);
  }
  more(screen, options.typesLeftOut, "types");
  if (document.holders.length > 0) {
    screen.line();
    const holders = formatTable(
      screen,
      [
        { title: "GROWTH", align: "right", paint: paint.bold },
        { title: "ENTRIES", align: "right" },
        { title: "RETAINED", align: "right" },
        { title: "" },
        { title: "HELD BY", flexible: "cutMiddle" },
      ],
      document.holders.map((row) => [
        formatSignedBytes(row.growthBytes),
        signed(row.entriesB - row.entriesA),
        formatBytes(row.retainedBytesB),
        row.change,
        `${row.path.join(" -> ")}: ${row.type}`,
      ]),
    );
    for (const line of holders) {
      screen.line(line);
    }
    more(screen, options.holdersLeftOut, "holders");
  }
  if (!options.quiet) {
    for (const limit of document.limits) {
      screen.line(`  ${paint.yellow(oneLine(limit))}`);
    }
  }
}

function more(screen: Screen, count: number, rows: string): void {
  if (count > 0) {
    screen.line(screen.paint.dim(`  ${formatCount(count)} more ${rows}`));
  }
}

function signed(count: number): string {
  return count > 0 ? `+${formatCount(count)}` : formatCount(count);
}
