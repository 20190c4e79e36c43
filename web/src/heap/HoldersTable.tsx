/** Objects that retain most memory, and number lists that an array could replace. */
import type { HeapHolderJson, HeapJson } from "../../../src/model/documents/heap/heap_document.js";
import type { NamedHeapTree } from "../../../src/model/documents/heap/heap_page.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { Way } from "./HeapHead.js";

const SHOWN_BOXED = 5;

interface HoldersTableProps {
  heap: HeapJson;
  tree: NamedHeapTree | null;
  onOpen: (row: number) => void;
}

export function HoldersTable({ heap, tree, onOpen }: HoldersTableProps) {
  const { holders, boxed = [] } = heap;
  if (holders === undefined) {
    return null;
  }
  const open = (holder: HeapHolderJson) => {
    const row = tree?.address.indexOf(Number(holder.address)) ?? -1;
    if (row > 0) {
      onOpen(row);
    }
  };
  return (
    <section className="panel stacked" aria-label="Holders">
      <div className="toolbar">
        <h2>Holders</h2>
        <span className="note">retain far more than any single object below them</span>
      </div>
      {boxed.length > 0 && (
        <ul className="heap-boxed">
          {boxed.slice(0, SHOWN_BOXED).map((one) => (
            <li key={`${one.path.join(" ")} ${one.of} ${one.bytes}`}>
              <Way words={one.path} /> is a {one.container} of {formatCount(one.objects)} {one.of}:{" "}
              <b>{formatBytes(one.bytes)}</b>, as an array {formatBytes(one.arrayBytes)}
            </li>
          ))}
        </ul>
      )}
      <DataTable
        name="Holders"
        rows={holders}
        columns={columnsOf(heap)}
        keyOf={(row) => row.address}
        sortedBy="retained"
        open={open}
        empty="No object retains a large share of memory."
      />
    </section>
  );
}

function columnsOf({ totals }: HeapJson): Column<HeapHolderJson>[] {
  return [
    {
      id: "path",
      name: "Held by",
      track: "minmax(9rem, 1fr)",
      order: (row) => row.path.join(" "),
      cell: (row) => (
        <span title={row.path.join(" → ")}>
          <Way words={row.path} />
        </span>
      ),
    },
    {
      id: "type",
      name: "Type",
      track: "minmax(5rem, 12rem)",
      wide: true,
      order: (row) => row.type,
      cell: (row) => <code>{row.type}</code>,
    },
    {
      id: "entries",
      name: "Entries",
      title: "of a container",
      track: "5rem",
      numeric: true,
      wide: true,
      order: (row) => row.entries,
      cell: (row) => (row.entries > 0 ? formatCount(row.entries) : "–"),
    },
    {
      id: "retained",
      name: "Retained",
      title: "what would be freed if it were removed",
      track: "5.5rem",
      numeric: true,
      order: (row) => row.retainedBytes,
      cell: (row) => formatBytes(row.retainedBytes),
    },
    {
      id: "share",
      name: "Share",
      track: "4rem",
      numeric: true,
      wide: true,
      order: (row) => row.retainedBytes,
      cell: (row) => formatShare(row.retainedBytes / Math.max(totals.bytes, 1)),
    },
  ];
}
