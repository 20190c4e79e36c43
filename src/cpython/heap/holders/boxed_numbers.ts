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
  const { graph, tree, paths } = objects;
  const rowOf = (name: string) => graph.typeNames.indexOf(name);
  const kinds = { float: rowOf("float"), int: rowOf("int") };
  const names = new StepNames(objects);
  const containers = largeContainers(objects);
  const count = (container: Items, to: NodeId, isAlone: boolean) => {
    const type = uint32At(graph.type, to);
    container.float += type === kinds.float ? 1 : 0;
    container.int += type === kinds.int ? 1 : 0;
    container.bytes += isAlone ? float64At(graph.shallow, to) : 0;
  };
  for (const [node, container] of containers) {
    const end = uint32At(graph.edgeStart, node + 1);
    for (let edge = uint32At(graph.edgeStart, node); edge < end; edge++) {
      const to = uint32At(graph.edgeTo, edge);
      count(container, to, tree.dominator[to] === node);
    }
  }
  for (const [node, referrer] of graph.onlyReferrer?.entries() ?? []) {
    const container = referrer === 0 ? undefined : containers.get(referrer);
    if (container !== undefined) {
      count(container, node, true);
    }
  }
  const found: { node: NodeId; of: "float" | "int"; count: Objects; bytes: Bytes }[] = [];
  for (const [node, { float, int, items, bytes }] of containers) {
    const of = float >= int ? "float" : "int";
    const numbers = Math.max(float, int);
    if (numbers >= items * LEAST_SHARE) {
      found.push({ node, of, count: numbers, bytes });
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

interface Items {
  readonly items: Objects;
  float: Objects;
  int: Objects;
  /** Of the container, and of the numbers that only it holds. */
  bytes: Bytes;
}

/** Lists and tuples with many items. */
function largeContainers({ graph, types }: ObjectGraph): Map<NodeId, Items> {
  const items = new Uint32Array(graph.nodes);
  for (const referrer of graph.onlyReferrer ?? []) {
    items[referrer] = (items[referrer] ?? 0) + 1;
  }
  const found = new Map<NodeId, Items>();
  for (let node = FIRST_OBJECT; node < graph.nodes; node++) {
    const { shape } = types.of(uint32At(graph.type, node));
    const edges = uint32At(graph.edgeStart, node + 1) - uint32At(graph.edgeStart, node);
    const all = edges + uint32At(items, node);
    if ((shape === SHAPE_LIST || shape === SHAPE_TUPLE) && all >= LEAST_COUNT) {
      found.set(node, { items: all, float: 0, int: 0, bytes: float64At(graph.shallow, node) });
    }
  }
  return found;
}
