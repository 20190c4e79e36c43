/**
 * The objects of a program behind which a library keeps memory of its own: frames of polars, tables of Arrow. Such a
 * library carries an allocator past the program's malloc, so that no sample falls on what it holds, and Python
 * counts a few dozen bytes of each object. They are known by their types' code:
 *
 *     object ── ob_type ──> type ── tp_dealloc ──> code of a file beside, or of, the one with the allocator
 */

import { dirname } from "node:path";
import { FIRST_OBJECT, type ObjectGraph } from "../cpython/heap/index.js";
import type { Mapping } from "../linux/memory/memory.js";
import { uint32At } from "../model/base/columns.js";
import type { Address } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";

/** Of a type; fewer say nothing of a growth. */
const FEWEST = 8;
const MOST_TYPES = 32;
/** Include/cpython/object.h; the same from 3.9 to 3.15. */
const TP_DEALLOC = 48;

export interface ObjectsOfType {
  readonly type: string;
  readonly nodes: readonly NodeId[];
}

/** By type, the most numerous first. `libraries`: files that carry an allocator. */
export function libraryObjects(
  { graph, types, copy }: ObjectGraph,
  libraries: readonly string[],
): ObjectsOfType[] {
  const folders = new Set(libraries.map((path) => dirname(path)));
  const code = copy.mappings.filter(
    ({ executable, path }) => executable && folders.has(dirname(path)),
  );
  const isOfLibrary = Array.from({ length: code.length === 0 ? 0 : types.count }, (_, row) =>
    lies(code, copy.word(types.of(row).address + TP_DEALLOC)),
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

function lies(code: readonly Mapping[], address: Address): boolean {
  return code.some(({ start, end }) => address >= start && address < end);
}
