import { statSync } from "node:fs";
import { formatBytes, formatCount, formatShare } from "../../model/base/numbers.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { FrameJson, LinesJson } from "../../model/documents/documents.js";
import { oneLine } from "../../model/errors/errors.js";
import { hasErrors, type ImportedFigure, isUnknown } from "../../model/profile/imported.js";
import { type Column, formatTable, type Screen } from "../text/output.js";
import { groupName } from "./row_groups.js";
import { functionOf, placeOf, shortPath } from "./sites.js";

type Row = LinesJson["lines"][number];

/** A demangled C++ name would push its location off the screen. */
const LONGEST_FUNCTION = 28;
const LONGEST_GROUP = 24;

interface LinesShown {
  readonly imported: LinesJson["imported"];
  /** Begin of the recording, ms since 1970: later changes of a file move its lines. */
  readonly recordedMs: TimeMs;
  /** Whether nothing of an imported recording is missing. */
  readonly isWhole: boolean;
  /** What the recording could not see. */
  readonly notes: readonly string[];
  readonly moment: string;
  readonly byLine: boolean;
  readonly leftOut: number;
  /** Why there is no row although the recording has some. */
  readonly unmatched: string | undefined;
  /** Which rows of the recording are included; undefined: all. */
  readonly where: string | undefined;
  /** The grouping of the lines. */
  readonly by: string | undefined;
  /** Where a source file is on this machine. */
  readonly pathOf: PathOf;
  /** The text of a source file on this machine; undefined if there is none. */
  readonly readText: (path: string) => string | undefined;
}

type PathOf = (file: string) => string;

type LineColumn = Column & { readonly text: (row: Row) => string };

/** The lines as a table; lines of a single file include their source text. */
export function printLines(screen: Screen, rows: readonly Row[], shown: LinesShown): void {
  const { paint } = screen;
  const when =
    shown.moment === "end"
      ? "AT END"
      : shown.moment === "peak"
        ? "AT PEAK"
        : `AT ${shown.moment.toUpperCase()}`;
  const sources = new Map<string, string[]>();
  const known = (figure: ImportedFigure) => !isUnknown(shown.imported, figure);
  const amount = (figure: ImportedFigure, bytes: (row: Row) => Bytes) => (row: Row) =>
    known(figure) ? formatBytes(bytes(row)) : "unknown";
  const ofLine = (title: string, bytes: (row: Row) => Bytes | undefined): LineColumn[] =>
    rows.some((row) => bytes(row) !== undefined)
      ? [{ title, align: "right", text: (row) => formatBytes(bytes(row) ?? 0) }]
      : [];
  const figures: LineColumn[] = [
    {
      title: when,
      align: "right",
      paint: paint.bold,
      text: amount("live", (row) => row.liveBytes),
    },
    {
      title: "±",
      align: "right",
      paint: paint.dim,
      text: hasErrors(shown.imported)
        ? amount("live", (row) => row.standardErrorBytes)
        : () => "unknown",
    },
    { title: "AT PEAK", align: "right", text: amount("peak", (row) => row.liveBytesAtPeak) },
    { title: "ALLOCATED", align: "right", text: amount("allocated", (row) => row.allocatedBytes) },
    ...ofLine("OWN PEAK", (row) => row.peakBytes),
    ...ofLine("COPIED", (row) => row.copiedBytes),
    {
      title: "PYTHON",
      align: "right",
      text: (row) => (known("python") ? formatShare(row.pythonShare) : "unknown"),
    },
  ];
  const functions: LineColumn = {
    title: "FUNCTION",
    paint: paint.cyan,
    text: (row) => screen.cutEnd(functionOf(frameOf(row)), LONGEST_FUNCTION),
  };
  const places: typeof figures = shown.byLine
    ? [
        { title: "LINE", align: "right", text: (row) => String(row.line) },
        {
          title: "SOURCE",
          flexible: "cutEnd",
          text: (row) => sourceOf(row, sources, shown),
        },
      ]
    : [
        // tracemalloc does not know functions.
        ...(rows.some((row) => row.function !== "") ? [functions] : []),
        { title: "PLACE", flexible: "cutMiddle", text: (row) => placeOf(frameOf(row)) },
      ];
  const { by } = shown;
  const group: typeof figures =
    by === undefined
      ? []
      : [
          {
            title: by.toUpperCase(),
            text: (row) => screen.cutEnd(groupName(row.group ?? ""), LONGEST_GROUP),
          },
        ];
  const columns = [
    ...figures.filter((column, index) => index === 0 || column.title !== when),
    ...group,
    ...places,
  ];
  const table = formatTable(
    screen,
    columns,
    rows.map((row) => columns.map((column) => column.text(row))),
  );
  const files = [...new Set(rows.map((row) => row.file))];
  const what = shown.byLine
    ? `of ${files.map(shortPath).join(", ")}`
    : "by line of your own code, or of a library that none of it called";
  const only = shown.where === undefined ? "" : `, ${oneLine(shown.where)} only`;
  screen.line(paint.bold(`${known("live") ? "Live bytes" : "Memory"} ${what}${only}`));
  for (const line of rows.length > 0
    ? table
    : [paint.dim(`  ${shown.unmatched ?? noLines(shown)}`)]) {
    screen.line(line);
  }
  if (shown.leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(shown.leftOut)} more`));
  }
  const changed = [...sources.keys()].filter((file) => changedMs(file) > shown.recordedMs);
  const moved = changed.map(
    (file) =>
      `${shortPath(file)} was changed after the recording began: the text beside the figures may be of other lines.`,
  );
  for (const note of [...moved, ...shown.notes]) {
    for (const line of screen.wrap(oneLine(note), 2)) {
      screen.line(`  ${paint.yellow(line)}`);
    }
  }
}

function changedMs(file: string): TimeMs {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function noLines({ imported, isWhole, where }: LinesShown): string {
  if (imported === undefined) {
    return "no allocation was sampled";
  }
  const source = `this recording, imported from ${imported.tool},`;
  if (!isWhole) {
    return `${source} is incomplete: the memory figures by line are in the part that is missing`;
  }
  return where === undefined
    ? `${source} has no memory figures by line`
    : `${source} has no memory with ${oneLine(where)}`;
}

/** The document does not contain which process ran the code; native code has no lines. */
function frameOf(row: Row): FrameJson {
  return { ...row, kind: row.line > 0 ? "python" : "native" };
}

/** The source text of the line if the file exists here, otherwise the function's name. */
function sourceOf(
  row: Row,
  sources: Map<string, string[]>,
  { pathOf, readText }: Pick<LinesShown, "pathOf" | "readText">,
): string {
  const path = pathOf(row.file);
  let text = sources.get(path);
  if (text === undefined) {
    text = readText(path)?.split("\n") ?? [];
    sources.set(path, text);
  }
  const line = text[row.line - 1]?.trim();
  return line === undefined || line === "" ? `(in ${functionOf(frameOf(row))})` : line;
}
