/** What changed between two saved heaps, by type and by holder. */
import type { HeapChange, HeapDiffJson, HeapHolderJson } from "./heap_document.js";
import type { SavedHeap } from "./heap_file.js";

type HolderChange = HeapDiffJson["holders"][number];

const EXPLAINED_SHARE = 0.8;

export function diffHeaps(
  a: SavedHeap,
  b: SavedHeap,
): Pick<HeapDiffJson, "totals" | "types" | "holders"> {
  const types = new Map<string, HeapDiffJson["types"][number]>();
  for (const [side, heap] of [
    ["A", a],
    ["B", b],
  ] as const) {
    for (const row of heap.types) {
      const joined = types.get(row.type) ?? {
        type: row.type,
        change: "same",
        objectsA: 0,
        objectsB: 0,
        bytesA: 0,
        bytesB: 0,
        growthBytes: 0,
      };
      joined[`objects${side}`] = row.objects;
      joined[`bytes${side}`] = row.bytes;
      joined.growthBytes = joined.bytesB - joined.bytesA;
      joined.change = changeOf(joined.objectsA, joined.objectsB, joined.growthBytes);
      types.set(row.type, joined);
    }
  }
  const sum = (heap: SavedHeap, key: "objects" | "bytes") =>
    heap.types.reduce((total, row) => total + row[key], 0);
  return {
    totals: {
      objectsA: sum(a, "objects"),
      objectsB: sum(b, "objects"),
      bytesA: sum(a, "bytes"),
      bytesB: sum(b, "bytes"),
    },
    types: byGrowth([...types.values()]),
    holders:
      a.holders === undefined || b.holders === undefined ? [] : diffHolders(a.holders, b.holders),
  };
}

function diffHolders(
  a: readonly HeapHolderJson[],
  b: readonly HeapHolderJson[],
): HeapDiffJson["holders"] {
  const joined = new Map<string, HolderChange>();
  for (const [side, rows] of [
    ["A", a],
    ["B", b],
  ] as const) {
    for (const row of rows) {
      const key = JSON.stringify([row.path, row.type]);
      const holder = joined.get(key) ?? {
        path: row.path,
        type: row.type,
        change: "same",
        entriesA: 0,
        entriesB: 0,
        retainedBytesA: 0,
        retainedBytesB: 0,
        growthBytes: 0,
      };
      holder[`entries${side}`] += row.entries;
      holder[`retainedBytes${side}`] += row.retainedBytes;
      holder.growthBytes = holder.retainedBytesB - holder.retainedBytesA;
      holder.change = changeOf(holder.retainedBytesA, holder.retainedBytesB, holder.growthBytes);
      joined.set(key, holder);
    }
  }
  const rows = [...joined.values()];
  return byGrowth(rows.filter((row) => !rows.some((other) => explains(other, row))));
}

/** If a holder's contents grew, all its own holders grew as well; only the nearest one is reported. */
function explains(nearer: HolderChange, row: HolderChange): boolean {
  const way = row.path.at(-1) === "__dict__" ? row.path.slice(0, -1) : row.path;
  return (
    nearer !== row &&
    nearer.path.length > way.length &&
    way.every((word, step) => word === nearer.path[step]) &&
    nearer.path.at(-1) !== "__dict__" &&
    Math.sign(nearer.growthBytes) === Math.sign(row.growthBytes) &&
    Math.abs(nearer.growthBytes) > Math.abs(row.growthBytes) * EXPLAINED_SHARE
  );
}

function changeOf(a: number, b: number, growth: number): HeapChange {
  if (a === 0) {
    return "appeared";
  }
  if (b === 0) {
    return "went";
  }
  return growth > 0 ? "grew" : growth < 0 ? "shrank" : "same";
}

function byGrowth<Row extends { readonly growthBytes: number; readonly type: string }>(
  rows: Row[],
): Row[] {
  return rows.sort((x, y) => y.growthBytes - x.growthBytes || (x.type < y.type ? -1 : 1));
}
