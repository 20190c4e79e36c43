/**
 * Whether the entries of a holder grow, or are created whole, from the order in which their objects were allocated:
 *
 *     users = {key: [event, event, ...]}      an old event and a new one are in the same list:  entries grow
 *     jobs = {key: [part, part, ...]}         the parts of a job are neighbours:                jobs become more
 */
import type { NodeId } from "../model/heap/heap_graph.js";
import { type PathTree, pathTo } from "../model/heap/heap_paths.js";

/** Pairs of objects in the same entry; fewer show nothing. */
const FEWEST_PAIRS = 6;
/** Mean distance of two of n places that are chosen at random, as a share of n. */
const RANDOM_DISTANCE = 1 / 3;

/**
 * Mean distance in order of allocation of objects in the same entry of `holder`, as a multiple of what chance would give: about 1
 * if entries grow, near 0 if they are created whole. `nodes`: objects, the oldest first. null: too few are in the same entry.
 */
export function entrySpread(
  paths: PathTree,
  holder: NodeId,
  nodes: readonly NodeId[],
): number | null {
  const places = new Map<NodeId, number[]>();
  nodes.forEach((node, place) => {
    const path = pathTo(paths, node);
    const at = path.indexOf(holder);
    const entry = at < 0 ? undefined : path[at + 1];
    if (entry !== undefined && entry !== node) {
      const known = places.get(entry) ?? [];
      places.set(entry, known);
      known.push(place);
    }
  });
  const distances = [...places.values()].flatMap((own) =>
    own.flatMap((place, n) => own.slice(n + 1).map((later) => later - place)),
  );
  const mean = distances.reduce((sum, distance) => sum + distance, 0) / distances.length;
  return distances.length < FEWEST_PAIRS ? null : mean / (RANDOM_DISTANCE * nodes.length);
}
