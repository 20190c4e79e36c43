/** How much the rows of one lookup tell: whether another look is worth its cost, and which of two says more. */

import { ROOT_STACKS } from "../cpython/heap/graph/graph.js";
import { ROOT_NAMES, ROOT_NATIVE } from "../cpython/heap/index.js";
import { heldByPython, LEAST_HELD } from "../recording/holder_reader.js";
import type { HolderRow } from "../recording/types.js";
import type { LookupSite } from "./lookup_request.js";

/** Most are held, and by what has a name: nothing is left for another look. */
export function tellsAll(rows: readonly HolderRow[], sites: readonly LookupSite[]): boolean {
  const isOpen = (row: HolderRow) => isLooseGraph(row) || isNameless(row);
  return heldByPython(rows, sites) >= LEAST_HELD && !rows.some(isOpen);
}

/** A graph is kept, and the tensor on which it hangs was not met. */
function isLooseGraph({ graph, path }: HolderRow): boolean {
  return graph > 0 && path.length === 0;
}

/** Held by what was not found: by C, by a value of an evaluation, or by a name that had another value when that was
 * copied. */
function isNameless({ path }: HolderRow): boolean {
  const [root = "", , local = ""] = path;
  const isThread = root === ROOT_NAMES[ROOT_STACKS] || root.startsWith("thread ");
  return root === ROOT_NAMES[ROOT_NATIVE] || (isThread && !local.startsWith("local "));
}

/** Larger, the more says who holds: the share of objects that are held, less that of graphs and of holders without
 * a name. */
export function tells(rows: readonly HolderRow[], sites: readonly LookupSite[]): number {
  const graphs = rows.filter(({ graph }) => graph > 0);
  const holders = rows.filter(({ path }) => path.length > 0);
  return heldByPython(rows, sites) - shareOf(graphs, isLooseGraph) - shareOf(holders, isNameless);
}

function shareOf(rows: readonly HolderRow[], is: (row: HolderRow) => boolean): number {
  return rows.filter(is).length / Math.max(1, rows.length);
}
