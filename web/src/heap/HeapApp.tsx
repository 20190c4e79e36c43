/** The page of a heap: retained sizes, types, and the paths to them from roots. */

import { useMemo, useState } from "react";
import { float64At, uint32At } from "../../../src/model/base/columns.js";
import type {
  HeapPageDocument,
  NamedHeapTree,
} from "../../../src/model/documents/heap/heap_page.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatShare,
  formatUtcTime,
} from "../format/numbers.js";
import { type Theme, useTheme } from "../theme/theme.js";
import { Figure, HeapHead } from "./HeapHead.js";
import { HeapMap } from "./HeapMap.js";
import { HeapTree } from "./HeapTree.js";
import { HoldersTable } from "./HoldersTable.js";
import { RowDetails } from "./RowDetails.js";
import { TypePlaces } from "./TypePlaces.js";
import { TypesTable } from "./TypesTable.js";
import { nameOf, placesOf, rowsTo, type TreeView, viewTree } from "./treeView.js";

export function HeapApp({ page }: { page: HeapPageDocument }) {
  const { heap, tree } = page;
  const [theme, toggleTheme] = useTheme();
  const [chosenType, chooseType] = useState<string | null>(null);
  const [selected, select] = useState(0);
  const view = useMemo(() => (tree === null ? null : viewTree(tree)), [tree]);
  const largest = heap.holders?.find(({ path }) => path.at(-1) !== "__dict__");
  const show = (row: number) => {
    select(row);
    document.getElementById("heap-holds")?.scrollIntoView({ block: "start" });
  };
  return (
    <>
      <HeapHead title={page.title} theme={theme} toggleTheme={toggleTheme} limits={heap.limits}>
        <Figure
          name="Objects"
          value={formatCount(heap.totals.objects)}
          note={`of ${formatCount(heap.types.length)} types`}
        />
        <Figure
          name="Bytes"
          value={formatBytes(heap.totals.bytes)}
          note="of objects, with their buffers"
        />
        <Figure
          name="Largest holder"
          value={largest ? formatBytes(largest.retainedBytes) : "–"}
          note={largest?.path.join(" → ") ?? "unknown without a graph"}
        />
        <Figure
          name="Garbage"
          value={heap.garbage ? formatBytes(heap.garbage.bytes) : "–"}
          note={
            heap.garbage
              ? `${formatCount(heap.garbage.objects)} objects wait for gc.collect()`
              : "unknown without a graph"
          }
        />
        <Figure
          name="Python"
          value={heap.target.python ?? "–"}
          note={`process ${heap.target.pid}, ${whenOf(heap)}`}
        />
      </HeapHead>
      <main>
        {view === null ? (
          <p className="panel empty">
            No object graph: only the types are known. The lines above give the reason.
          </p>
        ) : (
          <Holds {...{ view, theme, selected, chosenType }} onOpen={select} />
        )}
        <section className="panel heap-types" aria-label="Types">
          <TypesTable heap={heap} theme={theme} chosen={chosenType} onChoose={chooseType} />
          {chosenType !== null && tree !== null && (
            <TypePlaces
              tree={tree}
              type={chosenType}
              onOpen={show}
              onClose={() => chooseType(null)}
            />
          )}
        </section>
        <HoldersTable heap={heap} tree={tree} onOpen={show} />
      </main>
      <footer className="foot">
        Tidemark · {formatUtcTime(heap.atMs)} · names of types, modules, attributes and keys; no
        values
      </footer>
    </>
  );
}

function whenOf({ paused, pauseMs }: HeapPageDocument["heap"]): string {
  if (!paused) {
    return "while it ran";
  }
  return pauseMs > 0 ? `paused ${formatDuration(pauseMs)}` : "a core file";
}

interface HoldsProps {
  view: TreeView;
  theme: Theme;
  selected: number;
  chosenType: string | null;
  onOpen: (row: number) => void;
}

function Holds({ view, theme, selected, chosenType, onOpen }: HoldsProps) {
  const { tree } = view;
  // A row without children is shown among its siblings.
  const zoom = view.children(selected).length > 0 ? selected : uint32At(tree.parent, selected);
  const shared = { view, theme, zoom, selected, onOpen };
  const lit = useMemo(
    () => (chosenType === null ? null : new Set(placesOf(tree, chosenType).map(({ row }) => row))),
    [tree, chosenType],
  );
  return (
    <section className="panel" id="heap-holds" aria-label="Memory by holder">
      <Crumbs tree={tree} zoom={zoom} onOpen={onOpen} />
      <div className="heap-two">
        <HeapMap {...shared} lit={lit} />
        <HeapTree {...shared} />
      </div>
      <RowDetails view={view} row={selected} />
    </section>
  );
}

const MOST_CRUMBS = 8;

function Crumbs({
  tree,
  zoom,
  onOpen,
}: {
  tree: NamedHeapTree;
  zoom: number;
  onOpen: (row: number) => void;
}) {
  const rows = rowsTo(tree, zoom);
  const shown = rows.slice(-MOST_CRUMBS);
  return (
    <nav className="heap-crumbs" aria-label="Position in the map">
      <button type="button" className="quiet" disabled={zoom === 0} onClick={() => onOpen(0)}>
        All, {formatBytes(float64At(tree.retained, 0))}
      </button>
      {rows.length > shown.length && <span>› … {rows.length - shown.length} more</span>}
      {shown.map((row) => (
        <span key={row}>
          ›
          <button
            type="button"
            className="quiet"
            disabled={row === zoom}
            title={nameOf(tree, row)}
            onClick={() => onOpen(row)}
          >
            {nameOf(tree, row)}
          </button>
        </span>
      ))}
      {zoom !== 0 && (
        <span className="heap-zoomed">
          {formatBytes(float64At(tree.retained, zoom))},{" "}
          {formatShare(float64At(tree.retained, zoom) / float64At(tree.retained, 0))}
        </span>
      )}
    </nav>
  );
}
