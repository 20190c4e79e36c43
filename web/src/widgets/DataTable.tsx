// biome-ignore-all lint/a11y/useSemanticElements: a <table> cannot leave out the rows that are out of sight
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus for its rows
/** A table of any length: sortable, searchable, and with only the visible rows in the page. */
import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";

const TABLE_ROW_HEIGHT = 30;
const OVERSCAN = 8;

export interface Column<Row> {
  readonly id: string;
  readonly name: string;
  /** Explains the heading. */
  readonly title?: string;
  /** Width as CSS grid track. */
  readonly track: string;
  readonly numeric?: boolean;
  /** The first click on the heading puts the largest value on top; always true for numeric columns. */
  readonly largestFirst?: boolean;
  /** Hidden on a phone. */
  readonly wide?: boolean;
  readonly cell: (row: Row) => ReactNode;
  readonly order: (row: Row) => number | string;
}

interface Sort {
  /** Of a column. */
  readonly id: string;
  readonly down: boolean;
}

interface DataTableProps<Row> {
  name: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string | number;
  sortedBy: string;
  /** Enter or click on a row. */
  open?: (row: Row) => void;
  empty: string;
}

export function DataTable<Row>({
  name,
  rows,
  columns,
  keyOf,
  sortedBy,
  open,
  empty,
}: DataTableProps<Row>) {
  const { sorted, sort, setSort } = useSorted(rows, columns, sortedBy);
  const [active, setActive] = useState(0);
  const { scroller, range } = useScrollRange();
  const id = useId();
  const narrow = useNarrow();
  const shown = useMemo(
    () => columns.filter((column) => !narrow || !column.wide),
    [columns, narrow],
  );

  if (rows.length === 0) {
    return <p className="empty">{empty}</p>;
  }
  const [first, last] = rowsInSight(range, sorted.length);

  const pressed = (event: KeyboardEvent) => {
    const move = moveOf(event.key, Math.floor(range.height / TABLE_ROW_HEIGHT), sorted.length);
    if (move !== undefined) {
      const next = Math.min(Math.max(active + move, 0), sorted.length - 1);
      setActive(next);
      reveal(scroller.current, next);
    } else if (event.key === "Enter" && open && sorted[active]) {
      open(sorted[active]);
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <div
      className="table"
      role="grid"
      aria-label={name}
      aria-rowcount={sorted.length + 1}
      tabIndex={0}
      onKeyDown={pressed}
      aria-activedescendant={`${id}-${active}`}
    >
      <Headings columns={shown} sort={sort} setSort={setSort} />
      <div className="table-body" ref={scroller} role="presentation">
        <div
          style={{ height: sorted.length * TABLE_ROW_HEIGHT, position: "relative" }}
          role="presentation"
        >
          {sorted.slice(first, last).map((row, index) => {
            const at = first + index;
            return (
              <TableRow
                key={keyOf(row)}
                id={`${id}-${at}`}
                at={at}
                columns={shown}
                row={row}
                active={at === active}
                opens={open !== undefined}
                onClick={() => {
                  setActive(at);
                  open?.(row);
                }}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** The rows sorted by a column, initially by `sortedBy`. */
function useSorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sortedBy: string) {
  const [sort, setSort] = useState<Sort>(() => ({
    id: sortedBy,
    down: fallsFirst(columns.find((column) => column.id === sortedBy)),
  }));
  const sorted = useMemo(() => {
    const column = columns.find(({ id }) => id === sort.id);
    return column ? sortRows(rows, column, sort.down) : [...rows];
  }, [rows, columns, sort]);
  return { sorted, sort, setSort };
}

interface TableRowProps<Row> {
  id: string;
  /** Position in the sorted table. */
  at: number;
  columns: readonly Column<Row>[];
  row: Row;
  active: boolean;
  /** Whether a click on the row has an effect. */
  opens: boolean;
  onClick(): void;
}

function TableRow<Row>({ id, at, columns, row, active, opens, onClick }: TableRowProps<Row>) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys for its active row
    <div
      id={id}
      role="row"
      aria-rowindex={at + 2}
      aria-selected={active}
      className={opens ? "table-row opens" : "table-row"}
      style={{ ...tracksOf(columns), top: at * TABLE_ROW_HEIGHT }}
      onClick={onClick}
    >
      {columns.map((column) => (
        <div key={column.id} role="gridcell" className={column.numeric ? "numeric" : ""}>
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

interface HeadingsProps<Row> {
  columns: readonly Column<Row>[];
  sort: Sort;
  setSort(sort: Sort): void;
}

function Headings<Row>({ columns, sort, setSort }: HeadingsProps<Row>) {
  return (
    <div className="table-head" role="row" style={tracksOf(columns)}>
      {columns.map((column) => (
        <div
          key={column.id}
          role="columnheader"
          className={column.numeric ? "numeric" : ""}
          aria-sort={sort.id === column.id ? (sort.down ? "descending" : "ascending") : "none"}
        >
          <button
            type="button"
            title={column.title}
            onClick={() =>
              setSort({
                id: column.id,
                down: sort.id === column.id ? !sort.down : fallsFirst(column),
              })
            }
          >
            {column.name}
            {sort.id === column.id && <i aria-hidden="true">{sort.down ? " ↓" : " ↑"}</i>}
          </button>
        </div>
      ))}
    </div>
  );
}

/** The first row to draw and the one after the last; a few more than visible, so that scrolling shows no gap. */
function rowsInSight(range: { top: number; height: number }, rows: number): [number, number] {
  const first = Math.floor(range.top / TABLE_ROW_HEIGHT) - OVERSCAN;
  const last = Math.ceil((range.top + range.height) / TABLE_ROW_HEIGHT) + OVERSCAN;
  return [Math.max(0, first), Math.min(rows, last)];
}

/** By how many rows a key moves the active one; undefined: the key does not move it. */
function moveOf(key: string, rowsInSight: number, rows: number): number | undefined {
  const page = Math.max(1, rowsInSight - 2);
  const moves: Record<string, number> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -rows,
    End: rows,
  };
  return moves[key];
}

function tracksOf<Row>(columns: readonly Column<Row>[]) {
  return { gridTemplateColumns: columns.map((column) => column.track).join(" ") };
}

/** The visible part of a scrolled element, in CSS pixels. */
function useScrollRange() {
  const scroller = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ top: 0, height: 600 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) {
      return;
    }
    const update = () => setRange({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(update);
    observer.observe(element);
    element.addEventListener("scroll", update, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", update);
    };
  }, []);
  return { scroller, range };
}

function fallsFirst(column: Pick<Column<never>, "numeric" | "largestFirst"> | undefined): boolean {
  return Boolean(column?.largestFirst ?? column?.numeric);
}

/** Missing values (NaN) come last in both directions. */
function sortRows<Row>(rows: readonly Row[], { order }: Column<Row>, down: boolean): Row[] {
  const direction = down ? -1 : 1;
  return rows
    .map((row) => ({ row, key: order(row) }))
    .sort((a, b) => {
      if (typeof a.key === "string" || typeof b.key === "string") {
        return direction * String(a.key).localeCompare(String(b.key));
      }
      if (Number.isNaN(a.key) || Number.isNaN(b.key)) {
        return Number(Number.isNaN(a.key)) - Number(Number.isNaN(b.key));
      }
      return direction * (a.key - b.key);
    })
    .map(({ row }) => row);
}

function reveal(scroller: HTMLElement | null, row: number): void {
  if (!scroller) {
    return;
  }
  const top = row * TABLE_ROW_HEIGHT;
  if (top < scroller.scrollTop) {
    scroller.scrollTop = top;
  } else if (top + TABLE_ROW_HEIGHT > scroller.scrollTop + scroller.clientHeight) {
    scroller.scrollTop = top + TABLE_ROW_HEIGHT - scroller.clientHeight;
  }
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia("(max-width: 720px)").matches);
  useEffect(() => {
    const query = matchMedia("(max-width: 720px)");
    const changed = () => setNarrow(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return narrow;
}
