/** How wide the lines of a stream may be. */

/** Where a picture or a help text needs a width and nothing gives one. */
export const PLAIN_COLUMNS = 80;
const NARROWEST = 40;
const WIDEST = 160;

/** Columns of a line: a terminal's own; elsewhere those of the variable COLUMNS, else Infinity. */
export function columnsOf(stream: NodeJS.WriteStream): number {
  const columns = stream.isTTY
    ? Math.min(stream.columns > 0 ? stream.columns : PLAIN_COLUMNS, WIDEST)
    : (wantedColumns() ?? Number.POSITIVE_INFINITY);
  return Math.max(NARROWEST, columns);
}

/** Columns for what needs some width: a picture, a help text. */
export function drawableColumns(columns: number): number {
  return Number.isFinite(columns) ? columns : PLAIN_COLUMNS;
}

/** The variable COLUMNS, as a shell or a person sets it; null where it holds no width. */
function wantedColumns(): number | null {
  const columns = Number(process.env.COLUMNS ?? "");
  return Number.isInteger(columns) && columns > 0 ? columns : null;
}
