/** The roots of a graph: the contents of sys.modules, and objects with more references than the graph explains. */

import type { AddressRange } from "../../../linux/memory/memory.js";
import { itemAt } from "../../../model/base/columns.js";
import type { Address } from "../../../model/base/units.js";
import type { HeapGraph, NodeId } from "../../../model/heap/heap_graph.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { PAGE } from "../memory/page_directory.js";
import { SHAPE_FRAME, SHAPE_MODULE, type TypeTable } from "../objects/type_table.js";
import type { EdgeColumn } from "./edge_column.js";
import type { NodeIndex } from "./node_index.js";
import type { References } from "./references.js";

export const ROOT = 0;
export const ROOT_MODULES = 1;
export const ROOT_STACKS = 2;
export const ROOT_VARIABLES = 3;
export const ROOT_NATIVE = 4;
export const ROOT_GARBAGE = 5;
export const FIRST_OBJECT = 6;

/** The name of a root on screen and in documents. */
export const ROOT_NAMES = [
  "roots",
  "modules",
  "thread stacks",
  "C variables",
  "native memory",
  "unreachable cycles",
] as const;

/** A count of 2^30 or more means "immortal" (3.12 and newer) and is not a number of references. */
const LEAST_IMMORTAL = 2 ** 30;

interface FoundPlaces {
  /** The first node that is not a Python object. */
  readonly end: NodeId;
  /** By node: the reference count of an object. */
  readonly counts: Uint32Array;
  readonly stacks: readonly AddressRange[];
  readonly modules: NodeId;
  /** Frame objects that are running. */
  readonly frames: readonly NodeId[];
  readonly index: NodeIndex;
}

/**
 * The objects that each root refers to. Only objects with more references than the graph accounts for are
 * roots. Words on stacks and in variables are often stale, and only show where a reference may be. `known`: by node, how
 * many edges lead to it, including those of the roots. `spare`: a column by node that is no longer needed.
 */
export function findRoots(
  copy: HeapPages,
  types: TypeTable,
  references: References,
  edges: EdgeColumn,
  graph: HeapGraph,
  { end, counts, modules, stacks, frames, index }: FoundPlaces,
): { readonly roots: NodeId[][]; readonly known: Uint32Array; readonly spare: Uint32Array } {
  const { nodes, onlyReferrer = new Uint32Array(nodes) } = graph;
  const place = new Uint8Array(nodes).fill(ROOT_NATIVE);
  const mark = (range: AddressRange, kind: number): void => {
    const from = edges.length;
    references.range(range.start, range.end - range.start);
    for (let edge = from; edge < edges.length; edge++) {
      place[edges.at(edge)] = kind;
    }
    edges.shorten(from);
  };
  for (const range of variablesOf(copy).flatMap((range) => withoutObjects(range, index))) {
    mark(range, ROOT_VARIABLES);
  }
  for (const range of stacks) {
    mark(range, ROOT_STACKS);
  }
  const known = countEdges(nodes, edges.view());
  const roots: NodeId[][] = Array.from({ length: FIRST_OBJECT }, () => []);
  const reached = new Reached(graph);
  if (modules !== 0) {
    const entries = graph.edgeTo.subarray(
      graph.edgeStart[modules] ?? 0,
      graph.edgeStart[modules + 1] ?? 0,
    );
    roots[ROOT_MODULES] = [
      ...new Set(entries.filter((node) => types.of(graph.type[node] ?? 0).shape === SHAPE_MODULE)),
      modules,
    ];
    reached.from(modules);
  }
  for (const frame of frames) {
    roots[ROOT_STACKS]?.push(frame);
    reached.from(frame);
  }
  for (let node = FIRST_OBJECT; node < end; node++) {
    const count = counts[node] ?? 0;
    // The count of an object with an only referrer is explained.
    if (onlyReferrer[node] !== 0 || (reached.has(node) && place[node] !== ROOT_STACKS)) {
      continue;
    }
    if (count > (known[node] ?? 0) || count >= LEAST_IMMORTAL) {
      const frame = types.of(graph.type[node] ?? 0).shape === SHAPE_FRAME;
      itemAt(roots, frame ? ROOT_STACKS : (place[node] ?? 0)).push(node);
      reached.from(node);
    }
  }
  roots[ROOT_GARBAGE] = garbageOf(nodes, onlyReferrer, reached);
  for (const [kind, nodes] of roots.entries()) {
    known[kind] = kind === ROOT ? 0 : 1;
    for (const node of nodes) {
      known[node] = (known[node] ?? 0) + 1;
    }
  }
  return { roots, known, spare: reached.stack };
}

/** By node. */
function countEdges(nodes: number, edgeTo: Uint32Array): Uint32Array {
  const known = new Uint32Array(nodes);
  for (let edge = 0; edge < edgeTo.length; edge++) {
    const to = edgeTo[edge] ?? 0;
    known[to] = (known[to] ?? 0) + 1;
  }
  return known;
}

/** Nodes that no root leads to, and that lead to all others of this kind. */
function garbageOf(nodes: number, onlyReferrer: Uint32Array, reached: Reached): NodeId[] {
  const garbage: NodeId[] = [];
  for (let node = FIRST_OBJECT; node < nodes; node++) {
    if (onlyReferrer[node] === 0 && !reached.has(node)) {
      garbage.push(node);
      reached.from(node);
    }
  }
  return garbage;
}

/** .data and .bss of everything that is loaded. */
function variablesOf(copy: HeapPages): AddressRange[] {
  let data = 0;
  return copy.mappings.flatMap(({ start, end, path, inode, writable }) => {
    // Variables without a value in the file (.bss) follow those that have one.
    const variables = writable && (inode !== 0 || (path === "" && start === data));
    data = variables && inode !== 0 ? end : 0;
    return variables ? copy.resident(start, end) : [];
  });
}

/** The pages in which no object begins: the kernel joins an arena with the .bss that it follows in memory. */
function withoutObjects({ start, end }: AddressRange, index: NodeIndex): AddressRange[] {
  const ranges: { start: Address; end: Address }[] = [];
  for (let at = start; at < end; at += PAGE) {
    const last = ranges.at(-1);
    if (index.isInPageOf(at)) {
      continue;
    }
    if (last?.end === at) {
      last.end = at + PAGE;
    } else {
      ranges.push({ start: at, end: at + PAGE });
    }
  }
  return ranges;
}

/** The nodes reachable from the nodes that are already named. */
class Reached {
  readonly #reached: Uint8Array;
  readonly stack: Uint32Array;

  constructor(readonly graph: HeapGraph) {
    this.#reached = new Uint8Array(graph.nodes);
    this.stack = new Uint32Array(graph.nodes);
  }

  has(node: NodeId): boolean {
    return this.#reached[node] === 1;
  }

  from(node: NodeId): void {
    const { edgeStart, edgeTo } = this.graph;
    const reached = this.#reached;
    const { stack } = this;
    let depth = 0;
    if (reached[node] === 0) {
      reached[node] = 1;
      stack[depth++] = node;
    }
    while (depth > 0) {
      const at = stack[--depth] ?? 0;
      for (let edge = edgeStart[at] ?? 0; edge < (edgeStart[at + 1] ?? 0); edge++) {
        const to = edgeTo[edge] ?? 0;
        if (reached[to] === 0) {
          reached[to] = 1;
          stack[depth++] = to;
        }
      }
    }
  }
}
