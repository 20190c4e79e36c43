// biome-ignore-all lint/a11y/useSemanticElements: a <table> cannot leave out the rows that are out of sight
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus for its rows
/** A table of any length: sortable, and with only the visible rows in the page. */
import {
  constructSortFn,
  createSortedRowModel,
  type ReactTable,
  type RowData,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type KeyboardEvent,
  type ReactNode,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";

const TABLE_ROW_HEIGHT = 30;
const SORTING = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });

const DIRECTIONS = {
  asc: ["ascending", " ↑"],
  desc: ["descending", " ↓"],
  none: ["none", ""],
} as const;

export interface Column<Row> {
  readonly id: string;
  readonly name: string;
  /** Explains the heading. */
  readonly title?: string;
  /** Width as CSS grid track. */
  readonly track: string;
  /** The same on a phone, if it differs. */
  readonly narrowTrack?: string;
  readonly numeric?: boolean;
  /** The first click on the heading puts the largest value on top; by default for numeric columns. */
  readonly largestFirst?: boolean;
  /** Hidden on a phone. */
  readonly wide?: boolean;
  readonly cell: (row: Row) => ReactNode;
  /** Rows without a value (NaN) come last in both directions. */
  readonly order: (row: Row) => number | string;
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

export function DataTable<Row extends RowData>({
  name,
  rows,
  columns,
  keyOf,
  sortedBy,
  open,
  empty,
}: DataTableProps<Row>) {
  const id = useId();
  const table = useSortedTable(rows, columns, sortedBy);
  const sorted = table.getRowModel().rows;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => TABLE_ROW_HEIGHT,
    overscan: 8,
    initialRect: { width: 0, height: 600 },
  });
  const { active, setActive, pressed } = useActiveRow(virtual, (index) =>
    open?.(sorted[index]?.original as Row),
  );
  if (rows.length === 0) {
    return <p className="empty">{empty}</p>;
  }
  return (
    <div
      className="table"
      role="grid"
      aria-label={name}
      aria-rowcount={sorted.length + 1}
      tabIndex={0}
      onKeyDown={pressed}
      aria-activedescendant={`${id}-${active}`}
      style={tracksOf(columns)}
    >
      <Headings columns={columns} table={table} />
      <div className="table-body" ref={scroller} role="presentation">
        <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="presentation">
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = sorted[index]?.original as Row;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys for its active row
              <div
                key={keyOf(row)}
                id={`${id}-${index}`}
                role="row"
                aria-rowindex={index + 2}
                aria-selected={index === active}
                className={open ? "table-row opens" : "table-row"}
                style={{ top: start }}
                onClick={() => {
                  setActive(index);
                  open?.(row);
                }}
              >
                {columns.map((column) => (
                  <div
                    key={column.id}
                    role="gridcell"
                    className={classOf(column)}
                    onPointerEnter={({ currentTarget }) => titleIfCut(currentTarget)}
                  >
                    {column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface HeadingsProps<Row extends RowData> {
  columns: readonly Column<Row>[];
  table: ReactTable<typeof SORTING, Row>;
}

function Headings<Row extends RowData>({ columns, table }: HeadingsProps<Row>) {
  return (
    <div className="table-head" role="row">
      {columns.map((column) => {
        const sorting = table.getColumn(column.id);
        const [direction, arrow] = DIRECTIONS[sorting?.getIsSorted() || "none"];
        return (
          <div
            key={column.id}
            role="columnheader"
            className={classOf(column)}
            aria-sort={direction}
          >
            <button type="button" title={column.title} onClick={() => sorting?.toggleSorting()}>
              {column.name}
              {arrow && <i aria-hidden="true">{arrow}</i>}
            </button>
          </div>
        );
      })}
    </div>
  );
}

/** The table's rows in the order of a column, initially `sortedBy`. */
function useSortedTable<Row extends RowData>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sortedBy: string,
) {
  const sortable = useMemo(
    () =>
      columns.map(({ id, order, numeric = false, largestFirst = numeric }) => ({
        id,
        accessorFn: (row: Row) => (Number.isNaN(order(row)) ? undefined : order(row)),
        sortFn: byValue,
        sortUndefined: "last" as const,
        sortDescFirst: largestFirst,
      })),
    [columns],
  );
  // The library caches the values of a row until the rows change; new columns may have other values.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new array for new columns
  const data = useMemo(() => [...rows], [rows, columns]);
  const initially = sortable.find(({ id }) => id === sortedBy);
  return useTable<typeof SORTING, Row>({
    features: SORTING,
    columns: sortable,
    data,
    initialState: { sorting: [{ id: sortedBy, desc: initially?.sortDescFirst ?? false }] },
    enableSortingRemoval: false,
  });
}

const byValue = constructSortFn({
  // The difference of two equal infinities is NaN.
  sort: (a, b) => (typeof a === "string" ? a.localeCompare(String(b)) : a - b || 0),
});

/** The row that keys move and Enter opens. */
function useActiveRow(
  virtual: Virtualizer<HTMLDivElement, Element>,
  open: (index: number) => void,
) {
  const [chosen, setActive] = useState(0);
  const last = virtual.options.count - 1;
  const active = Math.min(chosen, last);
  const pressed = (event: KeyboardEvent) => {
    const { startIndex = 0, endIndex = 0 } = virtual.range ?? {};
    const page = Math.max(1, endIndex - startIndex - 1);
    const targets: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target !== undefined) {
      const next = Math.min(Math.max(target, 0), last);
      setActive(next);
      virtual.scrollToIndex(next);
    } else if (event.key === "Enter" && event.target === event.currentTarget) {
      open(active);
    } else {
      return;
    }
    event.preventDefault();
  };
  return { active, setActive, pressed };
}

/** The style sheet uses the narrow tracks on a phone. */
function tracksOf<Row>(columns: readonly Column<Row>[]): CSSProperties {
  const narrow = columns.filter(({ wide }) => !wide);
  return {
    "--tracks": columns.map(({ track }) => track).join(" "),
    "--narrow-tracks": narrow.map(({ track, narrowTrack = track }) => narrowTrack).join(" "),
  } as CSSProperties;
}

/** Text that its column cuts is shown whole while the pointer is on it. */
function titleIfCut(cell: HTMLElement): void {
  cell.title = cell.scrollWidth > cell.clientWidth ? cell.innerText : "";
}

const classOf = ({ numeric, wide }: Column<never>) =>
  `${numeric ? "numeric" : ""} ${wide ? "wide" : ""}`;
