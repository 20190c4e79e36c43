import { readFileSync } from "node:fs";
import type { FrameJson, LinesJson } from "../../model/documents.js";
import { formatBytes, formatCount, formatShare, formatTable, type Screen } from "../output.js";
import { functionOf, placeOf, shortPath } from "./sites.js";

type Row = LinesJson["lines"][number];

/** The lines as a table; the lines of one file with their source beside them. */
export function printLines(
  screen: Screen,
  rows: readonly Row[],
  shown: { readonly moment: string; readonly byLine: boolean; readonly leftOut: number },
): void {
  const { paint } = screen;
  const when =
    shown.moment === "end" ? "AT END" : shown.moment === "peak" ? "AT PEAK" : `AT ${shown.moment}`;
  const sources = new Map<string, string[]>();
  const table = formatTable(
    screen,
    [
      { title: `LIVE ${when}`, align: "right", paint: paint.bold },
      { title: "±", align: "right", paint: paint.dim },
      { title: "AT PEAK", align: "right" },
      { title: "ALLOCATED", align: "right" },
      { title: "PYTHON", align: "right" },
      shown.byLine
        ? { title: "LINE", align: "right" as const }
        : { title: "FUNCTION", paint: paint.cyan },
      { title: shown.byLine ? "SOURCE" : "PLACE", flexible: shown.byLine ? "cutEnd" : "cutMiddle" },
    ],
    rows.map((row) => [
      formatBytes(row.liveBytes),
      formatBytes(row.standardErrorBytes),
      formatBytes(row.liveBytesAtPeak),
      formatBytes(row.allocatedBytes),
      formatShare(row.pythonShare),
      shown.byLine ? String(row.line) : functionOf(frameOf(row)),
      shown.byLine ? sourceOf(row, sources) : placeOf(frameOf(row)),
    ]),
  );
  const files = [...new Set(rows.map((row) => row.file))];
  if (shown.byLine) {
    screen.line(paint.bold(files.map(shortPath).join(", ")));
  }
  for (const line of table) {
    screen.line(line);
  }
  if (shown.leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(shown.leftOut)} more`));
  }
}

/** The document does not say who ran the code; native code has no lines. */
function frameOf(row: Row): FrameJson {
  return { ...row, kind: row.line > 0 ? "python" : "native" };
}

/** The line's text where the file is here, else its function's name. */
function sourceOf(row: Row, sources: Map<string, string[]>): string {
  let text = sources.get(row.file);
  if (text === undefined) {
    try {
      text = readFileSync(row.file, "utf8").split("\n");
    } catch {
      text = [];
    }
    sources.set(row.file, text);
  }
  const line = text[row.line - 1]?.replaceAll("\t", "    ");
  return line === undefined || line.trim() === "" ? `(in ${functionOf(frameOf(row))})` : line;
}
