/** The quality of one lookup: whether another lookup is justified, and which of two is more informative. */

import { ROOT_STACKS } from "../cpython/heap/graph/graph.js";
import { ROOT_NAMES, ROOT_NATIVE } from "../cpython/heap/index.js";
import { heldByPython, LEAST_HELD } from "../recording/holder_reader.js";
import type { HolderRow } from "../recording/types.js";
import type { LookupSite } from "./lookup_request.js";

/** Most are held by something with a name, so another lookup is unnecessary. */
export function isConclusive(rows: readonly HolderRow[], sites: readonly LookupSite[]): boolean {
  const isSwelling = swellingIn(sites);
  const isOpen = (row: HolderRow) =>
    isLooseGraph(row) || isNameless(row) || (isSwelling(row) && row.path.length === 0);
  return heldByPython(rows, sites) >= LEAST_HELD && !rows.some(isOpen);
}

/**
 * The rows without the holders of blocks that are replaced by larger ones, if they have no name: the program's name of
 * the block had another value when it was copied, and an earlier or later lookup finds it.
 */
export function withNamedHolders(
  rows: readonly HolderRow[],
  sites: readonly LookupSite[],
): HolderRow[] {
  const isSwelling = swellingIn(sites);
  return rows.map((row) => (isSwelling(row) && isNameless(row) ? { ...row, path: [] } : row));
}

function swellingIn(sites: readonly LookupSite[]): (row: HolderRow) => boolean {
  const swelling = new Set(sites.flatMap((site) => (site.swelling === null ? [] : site.site)));
  return ({ site }) => swelling.has(site);
}

/** A graph is kept, but the tensor that keeps it was not found. */
function isLooseGraph({ graph, path }: HolderRow): boolean {
  return graph > 0 && path.length === 0;
}

/** The holder was not found: C code, a temporary value, or a name that had another value when it was copied. */
function isNameless({ path }: HolderRow): boolean {
  const [root = "", , local = ""] = path;
  const isThread = root === ROOT_NAMES[ROOT_STACKS] || root.startsWith("thread ");
  return root === ROOT_NAMES[ROOT_NATIVE] || (isThread && !local.startsWith("local "));
}

/**
 * Higher if the result is more informative: the share of held objects, minus that of graphs and of holders
 * without a name.
 */
export function informativeness(rows: readonly HolderRow[], sites: readonly LookupSite[]): number {
  const isSwelling = swellingIn(sites);
  const graphs = rows.filter(({ graph }) => graph > 0);
  const holders = rows.filter((row) => row.path.length > 0 || isSwelling(row));
  const isUnnamed = (row: HolderRow) => row.path.length === 0 || isNameless(row);
  return heldByPython(rows, sites) - shareOf(graphs, isLooseGraph) - shareOf(holders, isUnnamed);
}

function shareOf(rows: readonly HolderRow[], is: (row: HolderRow) => boolean): number {
  return rows.filter(is).length / Math.max(1, rows.length);
}
