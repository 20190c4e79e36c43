/** Containers full of numbers stored as separate objects, which an array would store as plain values. */

import { float64At, uint32At } from "../../../model/base/columns.js";
import type { Bytes, Objects } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { pathTo } from "../../../model/heap/heap_paths.js";
import { FIRST_OBJECT, type ObjectGraph } from "../graph/graph.js";
import { StepNames } from "../names/step_names.js";
import { SHAPE_LIST, SHAPE_TUPLE } from "../objects/type_table.js";

interface BoxedNumbers {
  readonly path: readonly string[];
  /** "list" and "float". */
  readonly container: string;
  readonly of: "float" | "int";
  readonly count: Objects;
  readonly bytes: Bytes;
  /** The same numbers in an array of 8 bytes each. */
  readonly arrayBytes: Bytes;
}

const LEAST_COUNT = 10_000;
const LEAST_SHARE = 0.9;
const MOST_FOUND = 10;

export function findBoxedNumbers(objects: ObjectGraph): BoxedNumbers[] {
  const { graph, types, tree, paths } = objects;
  const rowOf = (name: string) => graph.typeNames.indexOf(name);
  const kinds = { float: rowOf("float"), int: rowOf("int") };
  const names = new StepNames(objects);
  const found: { node: NodeId; of: "float" | "int"; count: Objects; bytes: Bytes }[] = [];
  for (let node = FIRST_OBJECT; node < graph.nodes; node++) {
    const shape = types.of(uint32At(graph.type, node)).shape;
    const first = uint32At(graph.edgeStart, node);
    const edges = uint32At(graph.edgeStart, node + 1) - first;
    if ((shape !== SHAPE_LIST && shape !== SHAPE_TUPLE) || edges < LEAST_COUNT) {
      continue;
    }
    const counts = { float: 0, int: 0 };
    let bytes = float64At(graph.shallow, node);
    for (let edge = first; edge < first + edges; edge++) {
      const to = uint32At(graph.edgeTo, edge);
      const type = uint32At(graph.type, to);
      if (type === kinds.float) {
        counts.float += 1;
      } else if (type === kinds.int) {
        counts.int += 1;
      }
      if (tree.dominator[to] === node) {
        bytes += float64At(graph.shallow, to);
      }
    }
    const of = counts.float >= counts.int ? "float" : "int";
    if (counts[of] >= edges * LEAST_SHARE) {
      found.push({ node, of, count: counts[of], bytes });
    }
  }
  return found
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MOST_FOUND)
    .map(({ node, of, count, bytes }) => ({
      path: names.words(pathTo(paths, node)),
      container: names.typeName(node),
      of,
      count,
      bytes,
      arrayBytes: count * 8,
    }));
}
