/** Paths from roots as a graph for graphviz (`dot -Tsvg`). */

import {
  FIRST_OBJECT,
  findRootPaths,
  type ObjectGraph,
  StepNames,
} from "../../cpython/heap/index.js";
import { float64At } from "../../model/base/columns.js";
import { formatBytes } from "../../model/base/numbers.js";
import type { NodeId } from "../../model/heap/heap_graph.js";
import { pathTo } from "../../model/heap/heap_paths.js";

const MOST_PATHS = 30;

export function dotOf(objects: ObjectGraph, nodes: readonly NodeId[]): string {
  const names = new StepNames(objects);
  const seen = new Set<NodeId>();
  const edges = new Map<string, string>();
  for (const { nodes: way, path, objects: count } of findRootPaths(objects, nodes).slice(
    0,
    MOST_PATHS,
  )) {
    for (const [n, node] of way.entries()) {
      seen.add(node);
      const before = way[n - 1];
      if (before !== undefined) {
        edges.set(`${before} -> ${node}`, labelOf(names, objects, before, node));
      }
    }
    const last = way.at(-1);
    if (count > 1 && last !== undefined) {
      edges.set(`${last} -> many${last}`, `${path.at(-1) ?? ""} (${count})`);
    }
  }
  const boxes = [...seen].map(
    (node) =>
      `  ${node} [label=${quote(`${names.describe(node)}\n${formatBytes(float64At(objects.tree.retained, node))}`)}];`,
  );
  const arrows = [...edges].map(([edge, label]) => `  ${edge} [label=${quote(label)}];`);
  return `digraph heap {\n  rankdir=LR;\n  node [shape=box];\n${[...boxes, ...arrows].join("\n")}\n}\n`;
}

/** The last element of the path from one node to the next; none from a root. */
function labelOf(names: StepNames, objects: ObjectGraph, from: NodeId, to: NodeId): string {
  if (from < FIRST_OBJECT) {
    return "";
  }
  const way = pathTo(objects.paths, to);
  return names.words(way.slice(way.indexOf(from))).at(-1) ?? "";
}

function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}
