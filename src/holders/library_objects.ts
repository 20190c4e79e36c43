/**
 * Objects behind which a library keeps its own memory, such as polars frames and Arrow tables. Such a library
 * has its own allocator and does not use the program's malloc, so its memory is not sampled, and Python counts
 * only a few dozen bytes per object. The objects are recognized by the code of their types:
 *
 *     object ── ob_type ──> type ── tp_dealloc ──> code in or next to the file with the allocator
 */

import { dirname } from "node:path";
import { FIRST_OBJECT, type ObjectGraph } from "../cpython/heap/index.js";
import type { Mapping } from "../linux/memory/memory.js";
import { uint32At } from "../model/base/columns.js";
import type { Address } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";

/** Minimum number of objects of a type; fewer do not indicate growth. */
const FEWEST = 8;
const MOST_TYPES = 32;
/** Include/cpython/object.h; the same from 3.9 to 3.15. */
const TP_DEALLOC = 48;

export interface ObjectsOfType {
  readonly type: string;
  readonly nodes: readonly NodeId[];
}

/** By type, most numerous first. `libraries`: files that contain an allocator. */
export function libraryObjects(
  { graph, types, copy }: ObjectGraph,
  libraries: readonly string[],
): ObjectsOfType[] {
  const folders = new Set(libraries.map((path) => dirname(path)));
  const code = copy.mappings.filter(
    ({ executable, path }) => executable && folders.has(dirname(path)),
  );
  const isOfLibrary = Array.from({ length: code.length === 0 ? 0 : types.count }, (_, row) =>
    isInside(code, copy.word(types.of(row).address + TP_DEALLOC)),
  );
  const byType = new Map<string, NodeId[]>();
  for (let node = FIRST_OBJECT; node < graph.nodes; node++) {
    const row = uint32At(graph.type, node);
    if (isOfLibrary[row]) {
      const name = types.name(row);
      const same = byType.get(name) ?? [];
      byType.set(name, same);
      same.push(node);
    }
  }
  return [...byType]
    .filter(([, nodes]) => nodes.length >= FEWEST)
    .sort((a, b) => b[1].length - a[1].length)
    .slice(0, MOST_TYPES)
    .map(([type, nodes]) => ({ type, nodes }));
}

function isInside(code: readonly Mapping[], address: Address): boolean {
  return code.some(({ start, end }) => address >= start && address < end);
}
