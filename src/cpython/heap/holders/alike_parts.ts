/**
 * Memory that accumulates in a few similar places: the paths split at a container with few entries, and
 * continue in each of them by the same names to a separate container or chain.
 *
 *   connections: dict ──┬─> Connection ──> .history: list ──┬─> ...
 *                       │                                   └─> ...
 *                       └─> Connection ──> .history: list ──┬─> ...
 *                                                           └─> ...
 *   shown as: connections -> each of 2 -> .history
 *
 * A dict of lists (`by_day["mon"]`) is not changed, because there is no name between it and the growing lists.
 */
import { uint32At } from "../../../model/base/columns.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { pathTo } from "../../../model/heap/heap_paths.js";
import { FIRST_OBJECT, type ObjectGraph } from "../graph/graph.js";
import { chainFrom } from "../names/chains.js";
import type { StepNames } from "../names/step_names.js";
import { accumulationPoint } from "./accumulation.js";

/** Mean number of paths that a part must have; with fewer, it is an entry like many others. */
const FEWEST_WAYS = 3;
/** Share of the paths that must continue in the same way. */
const MOST = 0.6;

export interface AlikeParts {
  /** The containers that grow, or the first links of chains; the one with the most paths comes first. */
  readonly ends: readonly NodeId[];
  /**
   * Number of objects of the ends' types on the longest path of each part, including the ends; for a chain, its
   * links.
   */
  readonly links: number;
  /** The path from an entry of the container to the one that grows. */
  readonly words: readonly string[];
}

/** null if the paths to `nodes` through `container` do not continue in this way. */
export function alikeParts(
  objects: ObjectGraph,
  names: StepNames,
  container: NodeId,
  nodes: readonly NodeId[],
): AlikeParts | null {
  const parts = partsAt(objects, container, nodes);
  const ways = parts.reduce((sum, part) => sum + part.length, 0);
  if (parts.length < 2 || ways < FEWEST_WAYS * parts.length) {
    return null;
  }
  const alike = new Map<string, Alike>();
  for (const part of parts) {
    const end = accumulationPoint(objects, names, part);
    const way = end < FIRST_OBJECT ? [] : pathTo(objects.paths, end);
    const from = way.indexOf(container);
    const words = from < 0 ? [] : names.words(way.slice(from)).slice(1);
    const key = words.join("\n");
    const same = alike.get(key) ?? { words, ends: [], links: 0, ways: 0 };
    alike.set(key, same);
    same.ends.push(end);
    same.links += chainFrom(objects, end, part).links;
    same.ways += part.length;
  }
  const [most] = [...alike.values()].sort((a, b) => b.ways - a.ways);
  return most !== undefined &&
    most.ends.length > 1 &&
    most.ways >= MOST * ways &&
    most.words.some(isName)
    ? most
    : null;
}

interface Alike extends AlikeParts {
  readonly ends: NodeId[];
  links: number;
  ways: number;
}

/** The nodes below `container`, grouped by its entries; the largest group first. */
function partsAt(
  { paths }: ObjectGraph,
  container: NodeId,
  nodes: readonly NodeId[],
): readonly NodeId[][] {
  const parts = new Map<NodeId, NodeId[]>();
  for (const node of nodes) {
    let entry = 0;
    let at = node;
    for (; at !== 0 && at !== container; at = uint32At(paths.before, at)) {
      entry = at;
    }
    if (at === container && entry !== 0) {
      const part = parts.get(entry) ?? [];
      parts.set(entry, part);
      part.push(node);
    }
  }
  return [...parts.values()].sort((a, b) => b.length - a.length);
}

/** An attribute, a key or a variable: something that a reader can find in the source. */
function isName(word: string): boolean {
  return /^\.|\["|^(?:closure|context) variable |^local |^default of /.test(word);
}
