/** Chains: an object refers to the next one of its type, and so on (tracebacks, linked nodes, steps). */

import { uint32At } from "../../../model/base/columns.js";
import { formatExactCount } from "../../../model/base/numbers.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { ObjectGraph } from "../graph/graph.js";
import type { StepNames } from "./step_names.js";

/** This many objects of one type in a path form a chain. */
export const FEWEST_LINKS = 6;

interface Chain {
  /** Number of objects of the head's type on the longest path, including the head. */
  readonly links: number;
  /** From the head to the next object of its type; only the head if that is far away. */
  readonly link: readonly NodeId[];
}

const LONGEST_LINK = 16;

/** Among the paths from `head` to `nodes`, the one with the most objects of the head's type. */
export function chainFrom(
  { graph, paths }: ObjectGraph,
  head: NodeId,
  nodes: readonly NodeId[],
): Chain {
  const type = uint32At(graph.type, head);
  let longest = { links: 0, next: 0 };
  for (const node of nodes) {
    let links = 0;
    let next = 0;
    let at = node;
    for (; at !== 0 && at !== head; at = uint32At(paths.before, at)) {
      if (graph.type[at] === type) {
        links += 1;
        next = at;
      }
    }
    if (at === head && links + 1 > longest.links) {
      longest = { links: links + 1, next };
    }
  }
  const link: NodeId[] = [];
  let at = longest.next;
  for (; at !== 0 && at !== head && link.length < LONGEST_LINK; at = uint32At(paths.before, at)) {
    link.push(at);
  }
  return { links: longest.links, link: at === head ? [head, ...link.reverse()] : [head] };
}

/** How a chain continues from its head: ".before × 2,100"; null if it is not a chain. */
export function chainText(
  objects: ObjectGraph,
  names: StepNames,
  head: NodeId,
  nodes: readonly NodeId[],
): string | null {
  const { links, link } = chainFrom(objects, head, nodes);
  return links < FEWEST_LINKS || link.length < 2
    ? null
    : `${names.words(link).join(" → ")} × ${formatExactCount(links - 1)}`;
}
