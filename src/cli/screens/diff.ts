import { bySignificance, isNoise, splitStack } from "../../inspect/index.js";
import { formatBytes, formatCount, formatSignedBytes } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { DiffJson, FrameJson } from "../../model/documents/documents.js";
import { oneLine } from "../../model/errors/errors.js";
import { hasErrors, isUnknown, sharesDomains } from "../../model/profile/imported.js";
import { inOrderOf, type ListOptions, selectRows } from "../options/options.js";
import { type Column, formatTable, type Screen } from "../text/output.js";
import { groupName } from "./row_groups.js";
import { functionOf, originOf, placeOf } from "./sites.js";

export const DEFAULT_GROWTHS = 15;

interface Row {
  readonly place: string;
  readonly origin: string;
  a: Bytes;
  b: Bytes;
  variance: number;
}

const FIGURE_NAMES = {
  live: "Live",
  peak: "At peak",
  allocated: "Allocated",
  copied: "Copied",
  unknown: "Live",
} as const;

/** A table of sites by growth, then the totals. */
export function printDiff(
  screen: Screen,
  document: DiffJson,
  names: readonly [string, string],
  options: ListOptions & { readonly quiet?: boolean },
): void {
  const { paint } = screen;
  screen.line(`${paint.dim("A")}  ${paint.bold(oneLine(names[0]))}`);
  screen.line(`${paint.dim("B")}  ${paint.bold(oneLine(names[1]))}`);
  if (document.where !== undefined) {
    screen.line(paint.dim(`only ${oneLine(document.where)}`));
  }
  if (document.figure !== "unknown") {
    screen.line();
    const { by = "", groups } = document;
    if (groups === undefined) {
      printChanges(screen, document, options);
    } else {
      printGroups(screen, { ...document, by, groups }, options);
    }
  }
  printTotals(screen, document);
  for (const limit of document.limits) {
    for (const line of screen.wrap(oneLine(limit), 2)) {
      screen.line(`  ${paint.yellow(line)}`);
    }
  }
}

function printChanges(screen: Screen, document: DiffJson, options: ListOptions): void {
  const place = { title: "SITE", flexible: "cutMiddle" } as const;
  printAmounts(screen, changesOf(document), [{ title: "BY" }, place], options, (row) => ({
    name: row.place,
    amounts: [knowsErrors(document) ? Math.sqrt(row.variance) : null, row.a, row.b],
    cells: [row.origin, row.place],
  }));
}

function knowsErrors({ a, b }: Pick<DiffJson, "a" | "b">): boolean {
  return hasErrors(a.imported) && hasErrors(b.imported);
}

function printGroups(
  screen: Screen,
  document: DiffJson & Required<Pick<DiffJson, "by" | "groups">>,
  options: ListOptions,
): void {
  const { by, groups } = document;
  const columns = [{ title: by.toUpperCase(), flexible: "cutMiddle" }] as const;
  printAmounts(screen, groups, columns, options, (row) => ({
    name: groupName(row.group),
    amounts: [
      knowsErrors(document) ? row.standardErrorBytes : null,
      row.liveBytesA,
      row.liveBytesB,
    ],
    cells: [groupName(row.group)],
  }));
}

interface Growing {
  readonly growthBytes: Bytes;
  readonly isNoise?: boolean;
}

interface Cells {
  /** The text that `--filter` searches. */
  readonly name: string;
  /** The standard error (null: unknown), then A and B. */
  readonly amounts: readonly [Bytes | null, Bytes, Bytes];
  /** One value for each of the last columns. */
  readonly cells: readonly string[];
}

/** A table of growth in the order of `all`; `columns` come after the amounts. */
function printAmounts<Row extends Growing>(
  screen: Screen,
  all: readonly Row[],
  columns: readonly Column[],
  options: ListOptions,
  cellsOf: (row: Row) => Cells,
): void {
  const { paint } = screen;
  const { leftOut, unmatched, ...chosen } = selectRows(
    all.toSorted(byAmount),
    options,
    DEFAULT_GROWTHS,
    (row) => row.growthBytes,
    (row) => cellsOf(row).name,
  );
  const rows = inOrderOf(all, chosen.rows);
  const [last = { title: "" }] = columns.slice(-1);
  const table = formatTable(
    screen,
    [
      { title: "GROWTH", align: "right", paint: paint.bold },
      { title: "±", align: "right", paint: paint.dim },
      { title: "A", align: "right" },
      { title: "B", align: "right" },
      ...columns.slice(0, -1),
      { title: "" },
      last,
    ],
    rows.map((row) => {
      const { amounts, cells } = cellsOf(row);
      const noise = row.isNoise === true ? "noise" : "";
      return [
        formatSignedBytes(row.growthBytes),
        ...amounts.map((amount) => (amount === null ? "unknown" : formatBytes(amount))),
        ...cells.slice(0, -1),
        noise,
        cells.at(-1) ?? "",
      ];
    }),
  );
  const none = unmatched ?? (rows.length === 0 && leftOut === 0 ? "no difference" : undefined);
  for (const [index, line] of none === undefined ? table.entries() : []) {
    screen.line(rows[index - 1]?.isNoise === true ? paint.dim(line) : line);
  }
  if (none !== undefined) {
    screen.line(paint.dim(`  ${none}`));
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(leftOut)} more`));
  }
}

/** The rows that `--top` keeps: those beyond their error first, then by size of the change. */
export function byAmount(x: Growing, y: Growing): number {
  const amount = Math.abs(y.growthBytes) - Math.abs(x.growthBytes);
  return Number(x.isNoise === true) - Number(y.isNoise === true) || amount;
}

interface Change extends Row {
  readonly growthBytes: Bytes;
  readonly isNoise: boolean;
}

/** Source lines whose live bytes differ; those that differ by more than their error come first. @internal */
export function changesOf(document: DiffJson): Change[] {
  return groupRows(document)
    .filter((row) => row.a !== row.b)
    .map((row) => {
      const growthBytes = row.b - row.a;
      return { ...row, growthBytes, isNoise: isNoise(growthBytes, Math.sqrt(row.variance)) };
    })
    .sort(bySignificance);
}

/** One line about the growth that exceeds both `limitBytes` and its error; null if there is none. */
export function growthOver(document: DiffJson, limitBytes: Bytes): string | null {
  const { growthBytes, standardErrorBytes } = document.totals;
  const over = changesOf(document).filter((row) => !row.isNoise && row.growthBytes > limitBytes);
  const totalIsOver = growthBytes > limitBytes && !isNoise(growthBytes, standardErrorBytes);
  const [first] = over;
  if (!totalIsOver && first === undefined) {
    return null;
  }
  const total = `live memory grew by ${formatBytes(growthBytes)} ±${formatBytes(standardErrorBytes)}`;
  const site = first === undefined ? "" : `${first.place} by ${formatBytes(first.growthBytes)}`;
  const what = totalIsOver ? [total, site].filter((part) => part !== "").join(", ") : site;
  return `over --fail-on growth=${formatBytes(limitBytes)}: ${oneLine(what)}`;
}

function groupRows(document: DiffJson): Row[] {
  const rows = new Map<string, Row>();
  const hasDomains = sharesDomains(document.a.imported, document.b.imported);
  // The document leaves out names that one side does not know.
  const named = (frame: FrameJson) =>
    [functionOf(frame), placeOf(frame)].filter((part) => part !== "").join(" ");
  for (const site of document.sites) {
    const { headline, leaf } = splitStack(site.stack);
    const place = leaf === null ? named(headline) : `${named(headline)} in ${named(leaf)}`;
    const origin = hasDomains ? originOf(site.domain) : "unknown";
    const key = `${origin}\t${place}`;
    const row = rows.get(key) ?? {
      place,
      origin,
      a: 0,
      b: 0,
      variance: 0,
    };
    row.a += site.liveBytesA;
    row.b += site.liveBytesB;
    row.variance += site.standardErrorBytes ** 2;
    rows.set(key, row);
  }
  return [...rows.values()];
}

function printTotals(screen: Screen, { a, b, figure, totals }: DiffJson): void {
  const { paint } = screen;
  const arrow = (a: Bytes, b: Bytes) => `${formatBytes(a)} → ${formatBytes(b)}`;
  screen.line();
  const name = paint.bold(FIGURE_NAMES[figure ?? "live"].padEnd(10));
  screen.line(
    figure === "unknown"
      ? `${name}unknown`
      : `${name}${paint.bold(formatSignedBytes(totals.growthBytes))} ` +
          `${knowsErrors({ a, b }) ? `±${formatBytes(totals.standardErrorBytes)}` : "± unknown"}  (${arrow(totals.liveBytesA, totals.liveBytesB)})`,
  );
  if (isUnknown(a.imported, "rss") || isUnknown(b.imported, "rss")) {
    screen.line(`${paint.bold("Peak RSS")}  unknown`);
  } else if (a.file !== b.file) {
    screen.line(
      `${paint.bold("Peak RSS")}  ${paint.bold(formatSignedBytes(totals.peakRssBytesB - totals.peakRssBytesA))}` +
        `  (${arrow(totals.peakRssBytesA, totals.peakRssBytesB)})`,
    );
  }
}
