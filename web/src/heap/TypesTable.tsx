/** Every type of a heap: sorted by any column, searched by name or module. */
import { useMemo, useState } from "react";
import type { HeapJson, HeapTypeJson } from "../../../src/model/heap_document.js";
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
        empty="No type of that name."
        {...(graph ? { open: (row: HeapTypeJson) => onChoose(row.type) } : {})}
      />
    </div>
  );
}

function columnsOf(heap: HeapJson, theme: Theme, graph: boolean): Column<HeapTypeJson>[] {
  const whole = Math.max(heap.totals.bytes, 1);
  const number = (
    id: string,
    name: string,
    title: string,
    order: (row: HeapTypeJson) => number,
    cell: (row: HeapTypeJson) => string,
    wide = false,
  ): Column<HeapTypeJson> => ({
    id,
    name,
    title,
    track: "minmax(3.6rem, 6rem)",
    numeric: true,
    wide,
    order,
    cell,
  });
  return [
    {
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
    },
    number(
      "objects",
      "Objects",
      "how many there are",
      (row) => row.objects,
      (row) => formatCount(row.objects),
    ),
    number(
      "bytes",
      "Bytes",
      "as sys.getsizeof, and the buffers that they own",
      (row) => row.bytes,
      (row) => formatBytes(row.bytes),
      graph,
    ),
    number(
      "share",
      "Share",
      "of the bytes of all objects",
      (row) => row.bytes,
      (row) => formatShare(row.bytes / whole),
      true,
    ),
    number(
      "average",
      "Each",
      "bytes of one, on average",
      (row) => row.bytes / row.objects,
      (row) => formatBytes(row.bytes / row.objects),
      true,
    ),
    number(
      "tracked",
      "Tracked",
      "that the garbage collector looks at",
      (row) => row.trackedObjects,
      (row) => formatCount(row.trackedObjects),
      true,
    ),
    ...(graph
      ? [
          number(
            "retained",
            "Retained",
            "what would be freed if all objects of the type went",
            (row) => row.retainedBytes ?? 0,
            (row) => formatBytes(row.retainedBytes ?? 0),
          ),
        ]
      : []),
  ];
}
