/** All types of a heap, sortable by any column and searchable by name or module. */
import { useMemo, useState } from "react";
import type { HeapJson, HeapTypeJson } from "../../../src/model/documents/heap/heap_document.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { typeColour } from "./typeColours.js";

interface TypesTableProps {
  heap: HeapJson;
  theme: Theme;
  chosen: string | null;
  onChoose: (type: string) => void;
}

export function TypesTable({ heap, theme, chosen, onChoose }: TypesTableProps) {
  const [search, setSearch] = useState("");
  const graph = heap.holders !== undefined;
  const columns = useMemo(() => columnsOf(heap, theme, graph), [heap, theme, graph]);
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return heap.types.filter(({ type }) => type.toLowerCase().includes(wanted));
  }, [heap, search]);
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  return (
    <div>
      <div className="toolbar">
        <h2>Types</h2>
        <span className="note" aria-live="polite">
          {search.trim() !== "" && `${formatCount(rows.length)} found, ${formatBytes(bytes)}`}
        </span>
        {chosen !== null && graph && <span className="note">{chosen} is lit in the map</span>}
        <input
          type="search"
          className="search"
          placeholder="Search a type or module"
          aria-label="Search types"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
      </div>
      <DataTable
        name="Types"
        rows={rows}
        columns={columns}
        keyOf={(row) => row.type}
        sortedBy={graph ? "retained" : "bytes"}
        empty="No type has that name."
        {...(graph ? { open: (row: HeapTypeJson) => onChoose(row.type) } : {})}
      />
    </div>
  );
}

function columnsOf(heap: HeapJson, theme: Theme, graph: boolean): Column<HeapTypeJson>[] {
  const whole = Math.max(heap.totals.bytes, 1);
  const type: Column<HeapTypeJson> = {
    id: "type",
    name: "Type",
    track: "minmax(4.5rem, 1fr)",
    order: (row) => row.type,
    cell: (row) => (
      <>
        <i className="dot" style={{ background: typeColour(row.type, theme).fill }} />
        <code title={row.type}>{row.type}</code>
      </>
    ),
  };
  const numbers: NumberColumn[] = [
    {
      id: "objects",
      name: "Objects",
      title: "number of objects",
      order: (row) => row.objects,
      format: formatCount,
    },
    {
      id: "bytes",
      name: "Bytes",
      title: "as reported by sys.getsizeof, plus the buffers that they own",
      order: (row) => row.bytes,
      format: formatBytes,
      wide: graph,
    },
    {
      id: "share",
      name: "Share",
      title: "share of the bytes of all objects",
      order: (row) => row.bytes,
      format: (bytes) => formatShare(bytes / whole),
      wide: true,
    },
    {
      id: "average",
      name: "Each",
      title: "average bytes of one object",
      order: (row) => row.bytes / row.objects,
      format: formatBytes,
      wide: true,
    },
    {
      id: "tracked",
      name: "Tracked",
      title: "tracked by the garbage collector",
      order: (row) => row.trackedObjects,
      format: formatCount,
      wide: true,
    },
  ];
  if (graph) {
    numbers.push(RETAINED);
  }
  return [type, ...numbers.map(numberColumn)];
}

interface NumberColumn extends Pick<Column<HeapTypeJson>, "id" | "name" | "title" | "wide"> {
  readonly order: (row: HeapTypeJson) => number;
  /** Share of the number that the column is sorted by. */
  readonly format: (value: number) => string;
}

const RETAINED: NumberColumn = {
  id: "retained",
  name: "Retained",
  title: "what would be freed if all objects of the type were removed",
  order: (row) => row.retainedBytes ?? 0,
  format: formatBytes,
};

function numberColumn({ format, ...column }: NumberColumn): Column<HeapTypeJson> {
  return {
    ...column,
    track: "minmax(3.6rem, 6rem)",
    numeric: true,
    cell: (row) => format(column.order(row)),
  };
}
