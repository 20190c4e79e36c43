/** Children, names and paths of the rows of a heap's tree. */
import { float64At, itemAt, uint8At, uint32At } from "../../../src/model/base/columns.js";
import type { NamedHeapTree } from "../../../src/model/documents/heap/heap_page.js";
import { TreeKind } from "../../../src/model/heap/heap_tree.js";
import { formatCount } from "../format/numbers.js";

export interface TreeView {
  readonly tree: NamedHeapTree;
  /** Rows directly below, largest first. */
  children(row: number): Uint32Array;
}

export function viewTree(tree: NamedHeapTree): TreeView {
  const { rows, parent, retained } = tree;
  const start = new Uint32Array(rows + 1);
  for (let row = 1; row < rows; row++) {
    start[uint32At(parent, row) + 1] = uint32At(start, uint32At(parent, row) + 1) + 1;
  }
  for (let row = 0; row < rows; row++) {
    start[row + 1] = uint32At(start, row + 1) + uint32At(start, row);
  }
  const bySize = Uint32Array.from({ length: Math.max(rows - 1, 0) }, (_, n) => n + 1).sort(
    (a, b) => float64At(retained, b) - float64At(retained, a) || a - b,
  );
  const next = start.slice();
  const below = new Uint32Array(bySize.length);
  for (const row of bySize) {
    const at = uint32At(next, uint32At(parent, row));
    below[at] = row;
    next[uint32At(parent, row)] = at + 1;
  }
  return {
    tree,
    children: (row) => below.subarray(uint32At(start, row), uint32At(start, row + 1)),
  };
}

/** The type of a row's objects; null if they have several types. */
export function typeOf(tree: NamedHeapTree, row: number): string | null {
  const kind = uint8At(tree.kind, row);
  return kind === TreeKind.root || kind === TreeKind.others
    ? null
    : (tree.typeNames[uint32At(tree.type, row)] ?? null);
}

/** The name of a tile or a line: "CACHE", "12,000 × app.Session". */
export function nameOf(tree: NamedHeapTree, row: number): string {
  if (row === 0) {
    return "all";
  }
  const count = float64At(tree.count, row);
  switch (uint8At(tree.kind, row)) {
    case TreeKind.together:
      return count === 1
        ? (typeOf(tree, row) ?? "")
        : `${formatCount(count)} × ${typeOf(tree, row)}`;
    case TreeKind.others:
      return `${formatCount(count)} small objects of other types`;
    default: {
      const steps = itemAt(tree.steps, row);
      // For one of many items in a container, its type is more informative than its index.
      return steps.at(-1)?.endsWith("[...]") && tree.kind[row] === TreeKind.object
        ? (typeOf(tree, row) ?? "")
        : steps.join(" → ");
    }
  }
}

/** Rows from below the common root to the row itself. */
export function rowsTo(tree: NamedHeapTree, row: number): number[] {
  const rows: number[] = [];
  for (let at = row; at !== 0; at = uint32At(tree.parent, at)) {
    rows.push(at);
  }
  return rows.reverse();
}

const MOST_WORDS = 24;

/** The path from a root as text; the middle of a very long one is omitted. */
export function holderPathTo(tree: NamedHeapTree, row: number): string[] {
  const rows = rowsTo(tree, row);
  const words = rows.flatMap((at, n) => {
    const steps = tree.kind[at] === TreeKind.object ? itemAt(tree.steps, at) : [nameOf(tree, at)];
    // The dict between an object and its attributes is not a separate step.
    const passes = n < rows.length - 1 && tree.kind[itemAt(rows, n + 1)] === TreeKind.object;
    return passes && steps.at(-1) === "__dict__" ? steps.slice(0, -1) : steps;
  });
  return words.length <= MOST_WORDS
    ? words
    : [
        ...words.slice(0, MOST_WORDS / 2),
        `… ${formatCount(words.length - MOST_WORDS)} steps …`,
        ...words.slice(-MOST_WORDS / 2),
      ];
}

interface Place {
  readonly row: number;
  readonly objects: number;
  readonly bytes: number;
}

/** The locations of a type's objects, most bytes first. */
export function placesOf({ places, typeNames }: NamedHeapTree, type: string): Place[] {
  const at = typeNames.indexOf(type);
  const [from, to] = at < 0 ? [0, 0] : [uint32At(places.start, at), uint32At(places.start, at + 1)];
  return Array.from({ length: to - from }, (_, n) => ({
    row: uint32At(places.row, from + n),
    objects: float64At(places.objects, from + n),
    bytes: float64At(places.bytes, from + n),
  }));
}
