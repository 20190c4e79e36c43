/** The dominator tree of a heap, reduced to the size of a page, each row with its path as text. */

import { uint32At } from "../../../model/base/columns.js";
import type { NamedHeapTree } from "../../../model/documents/heap/heap_page.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { cutTree, TreeKind } from "../../../model/heap/heap_tree.js";
import { FIRST_OBJECT, type ObjectGraph, ROOT_NAMES } from "../graph/graph.js";
import { StepNames } from "./step_names.js";

/** If there are more steps between an object and its dominator, only the last ones are shown. */
const MOST_STEPS = 24;

/** Only names of modules, attributes and string keys are shown, no other values of the program. */
export function namedTree(objects: ObjectGraph): NamedHeapTree {
  const { graph, tree, paths } = objects;
  const { node: nodes, ...cut } = cutTree(graph, tree);
  const names = new StepNames(objects);
  const steps: string[][] = Array.from({ length: cut.rows }, () => []);
  // Values of the same container are processed together, so its keys are read once.
  const rows = Array.from({ length: cut.rows }, (_, row) => row);
  rows.sort(
    (a, b) =>
      uint32At(paths.before, uint32At(nodes, a)) - uint32At(paths.before, uint32At(nodes, b)) ||
      a - b,
  );
  for (const row of rows) {
    const node = uint32At(nodes, row);
    if (cut.kind[row] === TreeKind.root) {
      steps[row] = [ROOT_NAMES[node] as string];
    } else if (cut.kind[row] === TreeKind.object) {
      steps[row] = stepsTo(objects, names, node);
    }
  }
  return { ...cut, steps };
}

/** The part of the path from a root after the object's dominator, through which every path leads. */
function stepsTo({ tree, paths }: ObjectGraph, names: StepNames, node: NodeId): string[] {
  const dominator = uint32At(tree.dominator, node);
  const way = [node];
  let at = uint32At(paths.before, node);
  while (at !== dominator && at !== 0 && way.length < MOST_STEPS) {
    way.push(at);
    at = uint32At(paths.before, at);
  }
  const cutShort = at !== dominator && at !== 0;
  if (at !== 0) {
    way.push(at);
    // Only the name of an object's attribute is shown, because its row is below the owner's row.
    const owner = uint32At(paths.before, at);
    if (owner >= FIRST_OBJECT && names.holdsAttributes(owner, at)) {
      way.push(owner);
    }
  }
  const words = names.words(way.reverse());
  if (cutShort) {
    return ["…", ...words];
  }
  // The row above already names the root.
  const root = dominator > 0 && dominator < FIRST_OBJECT ? ROOT_NAMES[dominator] : undefined;
  return words.length > 1 && words[0] === root ? words.slice(1) : words;
}
