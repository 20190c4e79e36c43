/** Chains: an object refers to the next of its type, and so on (tracebacks, linked nodes, steps). */
import { uint32At } from "../../../model/base/columns.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { ObjectGraph } from "../graph/graph.js";
import type { StepNames } from "./step_names.js";

/** This many objects of one type in a path form a chain. */
export const FEWEST_LINKS = 6;

interface Chain {
  /** Objects of the head's type on the longest way, the head included. */
  readonly links: number;
  /** From the head to the next of its type; the head alone where that is far. */
  readonly link: readonly NodeId[];
}

const LONGEST_LINK = 16;

/** On the ways from `head` to `nodes`, the one that has most of the head's type on it. */
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

/** How a chain goes on from its head: ".before × 2,100"; null where it is none. */
export function chainText(
  objects: ObjectGraph,
  names: StepNames,
  head: NodeId,
  nodes: readonly NodeId[],
): string | null {
  const { links, link } = chainFrom(objects, head, nodes);
  return links < FEWEST_LINKS || link.length < 2
    ? null
    : `${names.words(link).join(" → ")} × ${(links - 1).toLocaleString("en-US")}`;
}
