/**
 * The graph of a program's objects, from a copy of its memory:
 *
 *   copy ── scan ──> nodes ── references ──> edges ── roots ──> graph ── dominators ──> retained sizes
 *
 * Roots are tried in this order: what sys.modules holds; what stands on the stacks of threads; variables
 * of C; objects with more references than the graph accounts for (somebody outside Python's objects holds
 * them). What is left lives by references among itself alone: garbage that waits for the collector.
 */
import { growingFloat64, growingUint32 } from "../../model/growing_column.js";
import { findDominators } from "../../model/heap_dominators.js";
import type { DominatorTree, HeapGraph, NodeId } from "../../model/heap_graph.js";
import { type PathTree, searchPaths } from "../../model/heap_paths.js";
import { retainedByGroup } from "../../model/heap_retained.js";
import type { Address, Bytes, Objects } from "../../model/units.js";
import { EdgeColumn } from "./edge_column.js";
import type { HeapCopy } from "./heap_copy.js";
import { HeapScan, heapRegions, type ScanFigures } from "./heap_scan.js";
import type { HeapLayout } from "./layout.js";
import { NodeColumns } from "./node_columns.js";
import { NodeIndex } from "./node_index.js";
import { References } from "./references.js";
import { SHAPE_MODULE, TypeTable } from "./type_table.js";

export const ROOT = 0;
export const ROOT_MODULES = 1;
export const ROOT_STACKS = 2;
export const ROOT_VARIABLES = 3;
export const ROOT_NATIVE = 4;
export const ROOT_GARBAGE = 5;
export const FIRST_OBJECT = 6;

/** Of a root, on screen and in documents. */
export const ROOT_NAMES = [
  "roots",
  "modules",
  "thread stacks",
  "C variables",
  "native memory",
  "unreachable cycles",
] as const;

/** From 2^30 on a count says "immortal" (3.12 and newer), never how many references there are. */
const LEAST_IMMORTAL = 2 ** 30;

export interface ObjectGraph {
  readonly graph: HeapGraph;
  readonly tree: DominatorTree;
  readonly paths: PathTree;
  readonly copy: HeapCopy;
  readonly layout: HeapLayout;
  readonly types: TypeTable;
  readonly index: NodeIndex;
  readonly figures: ScanFigures;
  /** Buffers that objects own, ascending by address, with their owners. */
  readonly buffers: { readonly address: Float64Array; readonly owner: Uint32Array };
  /** What lives by references among itself alone. */
  readonly garbage: { readonly objects: Objects; readonly bytes: Bytes };
  /** sys.modules; 0 where it was not found. */
  readonly modules: NodeId;
}

/** Bytes that the analysis of so many objects takes at its highest, the copy of the heap not counted. */
export function graphMemory(objects: number): Bytes {
  return objects * 300;
}

/** @param modulesAt address of sys.modules. */
export function buildGraph(copy: HeapCopy, layout: HeapLayout, modulesAt: Address): ObjectGraph {
  const types = new TypeTable(copy, layout);
  const columns = new NodeColumns(types, layout);
  const figures = new HeapScan(copy, layout, types, columns).run(heapRegions(copy));
  const addresses = columns.address.view();
  const index = new NodeIndex(copy, addresses, FIRST_OBJECT);
  const nodes = addresses.length + FIRST_OBJECT;

  const address = new Float64Array(nodes);
  address.set(addresses, FIRST_OBJECT);
  const type = new Uint32Array(nodes);
  type.set(columns.type.view(), FIRST_OBJECT);
  const shallow = new Float64Array(nodes);
  shallow.set(columns.shallow.view(), FIRST_OBJECT);

  const edges = new EdgeColumn();
  const bufferAddresses = growingFloat64();
  const bufferOwners = growingUint32();
  const objectStart = new Uint32Array(nodes + 1);
  let current = 0;
  const references = new References(copy, layout, types, index, {
    edge: (to) => edges.push(to),
    owns: (buffer, bytes) => {
      bufferAddresses.push(buffer);
      bufferOwners.push(current);
      shallow[current] += bytes;
    },
  });
  const room = columns.room.view();
  for (let node = FIRST_OBJECT; node < nodes; node++) {
    current = node;
    objectStart[node] = edges.length;
    references.visit(address[node], type[node], room[node - FIRST_OBJECT]);
  }
  objectStart[nodes] = edges.length;

  const partial: HeapGraph = {
    nodes,
    firstObject: FIRST_OBJECT,
    address,
    type,
    shallow,
    edgeStart: objectStart,
    edgeTo: edges.view(),
    typeNames: [],
  };
  const modules = index.at(modulesAt);
  const roots = findRoots(copy, types, references, edges, partial, modules);
  const graph = withRoots(partial, roots, types);
  const tree = findDominators(graph);
  const paths = searchPaths(graph, [
    ROOT_MODULES,
    ROOT_STACKS,
    ROOT_VARIABLES,
    ROOT_NATIVE,
    ROOT_GARBAGE,
  ]);
  return {
    graph,
    tree,
    paths,
    copy,
    layout,
    types,
    index,
    figures,
    buffers: sortBuffers(bufferAddresses.view(), bufferOwners.view()),
    garbage: {
      objects: tree.retainedNodes[ROOT_GARBAGE] - 1,
      bytes: tree.retained[ROOT_GARBAGE],
    },
    modules,
  };
}

/** Bytes that all objects of a type retain together, by the type's name. */
export function typeRetained({ graph, tree }: ObjectGraph): Map<string, Bytes> {
  const groups = new Map<string, number>();
  const groupOfType = graph.typeNames.map((name) => {
    const group = groups.get(name) ?? groups.size;
    groups.set(name, group);
    return group;
  });
  const groupOf = Uint32Array.from(graph.type, (type) => groupOfType[type] ?? 0);
  const bytes = retainedByGroup(graph, tree, groupOf, groups.size);
  return new Map([...groups].map(([name, group]) => [name, bytes[group] as Bytes]));
}

/** Objects that each root refers to. */
function findRoots(
  copy: HeapCopy,
  types: TypeTable,
  references: References,
  edges: EdgeColumn,
  graph: HeapGraph,
  modules: NodeId,
): NodeId[][] {
  const { nodes } = graph;
  const roots: NodeId[][] = Array.from({ length: FIRST_OBJECT }, () => []);
  const found = growingUint32();
  const collect = (start: Address, bytes: Bytes): void => {
    const from = edges.length;
    references.range(start, bytes);
    for (let edge = from; edge < edges.length; edge++) {
      found.push(edges.at(edge));
    }
    edges.shorten(from);
  };
  if (modules !== 0) {
    roots[ROOT_MODULES] = [
      ...new Set(
        [...graph.edgeTo.subarray(graph.edgeStart[modules], graph.edgeStart[modules + 1])].filter(
          (node) => types.shapes[graph.type[node]] === SHAPE_MODULE,
        ),
      ),
      modules,
    ];
  }
  let data = 0;
  for (const { start, end, path, inode, writable } of copy.mappings) {
    const stack = path === "[stack]";
    // Variables without a value in the file (.bss) follow those that have one.
    const variables = writable && (inode !== 0 || (path === "" && start === data));
    data = variables && inode !== 0 ? end : 0;
    if (stack || variables) {
      found.length = 0;
      for (const range of copy.resident(start, end)) {
        collect(range.start, range.end - range.start);
      }
      const into = roots[stack ? ROOT_STACKS : ROOT_VARIABLES] as NodeId[];
      for (const node of new Set(found.view())) {
        into.push(node);
      }
    }
  }
  // From here on by counting: whoever has more references than are known is held from outside.
  const known = new Uint32Array(nodes);
  for (let edge = 0; edge < edges.length; edge++) {
    known[edges.at(edge)] += 1;
  }
  const reached = new Uint8Array(nodes);
  const stack = new Uint32Array(nodes);
  const reach = (node: NodeId): void => {
    let depth = 0;
    if (reached[node] === 0) {
      reached[node] = 1;
      stack[depth++] = node;
    }
    while (depth > 0) {
      const at = stack[--depth];
      for (let edge = graph.edgeStart[at]; edge < graph.edgeStart[at + 1]; edge++) {
        const to = graph.edgeTo[edge];
        if (reached[to] === 0) {
          reached[to] = 1;
          stack[depth++] = to;
        }
      }
    }
  };
  for (const kind of [ROOT_MODULES, ROOT_STACKS, ROOT_VARIABLES]) {
    (roots[kind] as NodeId[]).forEach(reach);
  }
  for (let node = FIRST_OBJECT; node < nodes; node++) {
    if (reached[node] === 0) {
      const count = copy.words[copy.index(graph.address[node])];
      if (count > known[node] || count >= LEAST_IMMORTAL) {
        (roots[ROOT_NATIVE] as NodeId[]).push(node);
        reach(node);
      }
    }
  }
  for (let node = FIRST_OBJECT; node < nodes; node++) {
    if (reached[node] === 0) {
      (roots[ROOT_GARBAGE] as NodeId[]).push(node);
      reach(node);
    }
  }
  return roots;
}

/** The same graph with the roots' edges before the objects'. */
function withRoots(graph: HeapGraph, roots: readonly NodeId[][], types: TypeTable): HeapGraph {
  const kinds = roots.slice(1).map((_, kind) => kind + 1);
  const extra = kinds.length + roots.reduce((sum, nodes) => sum + nodes.length, 0);
  const edgeTo = new Uint32Array(extra + graph.edgeTo.length);
  const edgeStart = new Uint32Array(graph.nodes + 1);
  let at = 0;
  for (const [kind, nodes] of roots.entries()) {
    edgeStart[kind] = at;
    for (const node of kind === ROOT ? kinds : nodes) {
      edgeTo[at++] = node;
    }
  }
  for (let node = FIRST_OBJECT; node <= graph.nodes; node++) {
    edgeStart[node] = graph.edgeStart[node] + extra;
  }
  edgeTo.set(graph.edgeTo, extra);
  const typeNames = Array.from({ length: types.count }, (_, row) => types.name(row));
  return { ...graph, edgeStart, edgeTo, typeNames };
}

function sortBuffers(addresses: Float64Array, owners: Uint32Array) {
  const order = Uint32Array.from(addresses, (_, n) => n).sort(
    (a, b) => addresses[a] - addresses[b],
  );
  return {
    address: Float64Array.from(order, (n) => addresses[n]),
    owner: Uint32Array.from(order, (n) => owners[n]),
  };
}
