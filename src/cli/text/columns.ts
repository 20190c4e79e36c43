/** The line width of a stream. */

/** Default width of charts and help texts. */
export const PLAIN_COLUMNS = 80;
const NARROWEST = 40;
const WIDEST = 160;

/** Columns of a line: those of the terminal; otherwise those of the variable COLUMNS, or Infinity. */
export function columnsOf(stream: NodeJS.WriteStream): number {
  const columns = stream.isTTY
    ? Math.min(stream.columns > 0 ? stream.columns : PLAIN_COLUMNS, WIDEST)
    : (wantedColumns() ?? Number.POSITIVE_INFINITY);
  return Math.max(NARROWEST, columns);
}

/** Columns for charts and help texts, which need a finite width. */
export function drawableColumns(columns: number): number {
  return Number.isFinite(columns) ? columns : PLAIN_COLUMNS;
}

/** The width in the variable COLUMNS; null if it holds none. */
function wantedColumns(): number | null {
  const columns = Number(process.env.COLUMNS ?? "");
  return Number.isInteger(columns) && columns > 0 ? columns : null;
}
