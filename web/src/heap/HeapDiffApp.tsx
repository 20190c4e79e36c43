/** The page of two heaps: what appeared, grew, shrank and disappeared, by type and by holder. */
import { useMemo, useState } from "react";
import type { HeapChange, HeapDiffJson } from "../../../src/model/documents/heap/heap_document.js";
import type { HeapDiffPageDocument } from "../../../src/model/documents/heap/heap_page.js";
import { formatBytes, formatCount, formatDuration, formatSignedBytes } from "../format/numbers.js";
import { useTheme } from "../theme/theme.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { Figure, HeapHead, Way } from "./HeapHead.js";

type TypeChange = HeapDiffJson["types"][number];
type HolderChange = HeapDiffJson["holders"][number];
interface Changed {
  readonly change: HeapChange;
  readonly growthBytes: number;
}

const CHANGES: readonly HeapChange[] = ["appeared", "grew", "shrank", "went", "same"];

export function HeapDiffApp({ page }: { page: HeapDiffPageDocument }) {
  const { a, b, totals, types, holders, limits } = page.diff;
  const [theme, toggleTheme] = useTheme();
  const [only, setOnly] = useState<HeapChange | null>(null);
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const shownTypes = useMemo(
    () => select(types, only, (row) => row.type.toLowerCase().includes(wanted)),
    [types, only, wanted],
  );
  const shownHolders = useMemo(
    () =>
      select(holders, only, (row) =>
        [...row.path, row.type].join(" ").toLowerCase().includes(wanted),
      ),
    [holders, only, wanted],
  );
  return (
    <>
      <HeapHead title={page.title} theme={theme} toggleTheme={toggleTheme} limits={limits}>
        <Figure
          name="Growth"
          value={formatSignedBytes(totals.bytesB - totals.bytesA)}
          note={`in ${formatDuration(Math.abs(b.atMs - a.atMs))}`}
        />
        <Figure name="A" value={formatBytes(totals.bytesA)} note={sideNote(a, totals.objectsA)} />
        <Figure name="B" value={formatBytes(totals.bytesB)} note={sideNote(b, totals.objectsB)} />
        <Figure
          name="Grew most"
          value={types[0] ? formatSignedBytes(types[0].growthBytes) : "–"}
          note={types[0]?.type ?? "no type"}
        />
        <Figure
          name="Holder that grew most"
          value={holders[0] ? formatSignedBytes(holders[0].growthBytes) : "–"}
          note={holders[0]?.path.join(" → ") ?? "no holders to compare"}
        />
      </HeapHead>
      <main>
        <div className="panel toolbar heap-choice">
          <ChangeChoice only={only} setOnly={setOnly} rows={[...types, ...holders]} />
          <input
            type="search"
            className="search"
            placeholder="Search a type or holder"
            aria-label="Search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </div>
        <section className="panel stacked" aria-label="By holder">
          <h3>By holder</h3>
          <DataTable
            name="Holders"
            rows={shownHolders}
            columns={HOLDER_COLUMNS}
            keyOf={(row) => `${row.path.join("\0")} ${row.type}`}
            sortedBy="growth"
            empty={holders.length === 0 ? "No holders to compare." : "No such holder."}
          />
        </section>
        <section className="panel stacked" aria-label="By type">
          <h3>By type</h3>
          <DataTable
            name="Types"
            rows={shownTypes}
            columns={TYPE_COLUMNS}
            keyOf={(row) => row.type}
            sortedBy="growth"
            empty="No such type."
          />
        </section>
      </main>
      <footer className="foot">Tidemark · from A to B; types and names, no values</footer>
    </>
  );
}

interface ChangeChoiceProps {
  /** null: every change. */
  only: HeapChange | null;
  setOnly(change: HeapChange | null): void;
  rows: readonly Changed[];
}

function ChangeChoice({ only, setOnly, rows }: ChangeChoiceProps) {
  return (
    <div className="segments">
      <button type="button" aria-pressed={only === null} onClick={() => setOnly(null)}>
        all changes
      </button>
      {CHANGES.map((change) => (
        <button
          type="button"
          key={change}
          aria-pressed={only === change}
          onClick={() => setOnly(change)}
        >
          {change} {formatCount(rows.filter((row) => row.change === change).length)}
        </button>
      ))}
    </div>
  );
}

/** Unchanged rows are shown on request. */
function select<Row extends Changed>(
  rows: readonly Row[],
  only: HeapChange | null,
  found: (row: Row) => boolean,
): Row[] {
  return rows.filter(
    (row) => (only === null ? row.change !== "same" : row.change === only) && found(row),
  );
}

function sideNote({ file }: HeapDiffJson["a"], objects: number): string {
  return `${file}, ${formatCount(objects)} objects`;
}

function signedCount(count: number): string {
  return count > 0 ? `+${formatCount(count)}` : formatCount(count);
}

function Growth({ row }: { row: Changed }) {
  return (
    <b className={row.growthBytes > 0 ? "grown" : row.growthBytes < 0 ? "shrunk" : ""}>
      {formatSignedBytes(row.growthBytes)}
    </b>
  );
}

function changeColumns<Row extends Changed>(): Column<Row>[] {
  return [
    {
      id: "change",
      name: "Change",
      track: "5rem",
      wide: true,
      order: (row) => CHANGES.indexOf(row.change),
      cell: (row) => row.change,
    },
    {
      id: "growth",
      name: "Growth",
      title: "bytes in B minus bytes in A",
      track: "6rem",
      numeric: true,
      order: (row) => row.growthBytes,
      cell: (row) => <Growth row={row} />,
    },
  ];
}

const TYPE_COLUMNS: readonly Column<TypeChange>[] = [
  {
    id: "type",
    name: "Type",
    track: "minmax(8rem, 1fr)",
    order: (row) => row.type,
    cell: (row) => <code title={row.type}>{row.type}</code>,
  },
  ...changeColumns<TypeChange>(),
  {
    id: "objects",
    name: "Objects",
    title: "in B minus in A",
    track: "6rem",
    numeric: true,
    order: (row) => row.objectsB - row.objectsA,
    cell: (row) => signedCount(row.objectsB - row.objectsA),
  },
  {
    id: "now",
    name: "Bytes in B",
    track: "6rem",
    numeric: true,
    wide: true,
    order: (row) => row.bytesB,
    cell: (row) => formatBytes(row.bytesB),
  },
];

const HOLDER_COLUMNS: readonly Column<HolderChange>[] = [
  {
    id: "path",
    name: "Held by",
    track: "minmax(8rem, 1fr)",
    order: (row) => row.path.join(" "),
    cell: (row) => (
      <span title={`${row.path.join(" → ")}: ${row.type}`}>
        <Way words={row.path} />
      </span>
    ),
  },
  {
    id: "type",
    name: "Type",
    track: "minmax(4rem, 9rem)",
    wide: true,
    order: (row) => row.type,
    cell: (row) => <code>{row.type}</code>,
  },
  ...changeColumns<HolderChange>(),
  {
    id: "entries",
    name: "Entries",
    title: "of a container: in B minus in A",
    track: "6rem",
    numeric: true,
    wide: true,
    order: (row) => row.entriesB - row.entriesA,
    cell: (row) => signedCount(row.entriesB - row.entriesA),
  },
  {
    id: "now",
    name: "Retained in B",
    track: "6.5rem",
    numeric: true,
    wide: true,
    order: (row) => row.retainedBytesB,
    cell: (row) => formatBytes(row.retainedBytesB),
  },
];
