/**
 * The graph of a program's objects, from a copy of its memory:
 *
 *   copy ── scan ──> nodes ── references ──> edges ── roots ──> graph ── dominators ──> retained sizes
 *
 * Roots are what sys.modules holds, and the objects with more references than the graph accounts for: a
 * local of a running function, a variable of C, or something in native memory holds those. What no root
 * leads to lives by references among itself alone: garbage that waits for the collector.
 */
import type { AddressRange } from "../../linux/memory.js";
import { growingFloat64, growingUint32 } from "../../model/growing_column.js";
import { findDominators } from "../../model/heap_dominators.js";
import type { DominatorTree, HeapGraph, NodeId } from "../../model/heap_graph.js";
import { type PathTree, searchPaths } from "../../model/heap_paths.js";
import { retainedByGroup } from "../../model/heap_retained.js";
import type { Address, Bytes, Objects } from "../../model/units.js";
import { EdgeColumn } from "./edge_column.js";
import type { FrameLocals } from "./frame_locals.js";
import type { HeapCopy } from "./heap_copy.js";
import { heapRegions } from "./heap_regions.js";
import { HeapScan, type ScanFigures } from "./heap_scan.js";
import type { HeapLayout } from "./layout.js";
import { NodeColumns } from "./node_columns.js";
import { NodeIndex } from "./node_index.js";
import { References } from "./references.js";
import { SHAPE_FRAME, SHAPE_MODULE, TypeTable } from "./type_table.js";

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
  readonly frames: FrameLocals;
}

/** Bytes that the analysis of so many objects takes at its highest, the copy of the heap not counted. */
export function graphMemory(objects: number): Bytes {
  return objects * 300;
}

export interface RootPlaces {
  /** sys.modules. */
  readonly modules: Address;
  /** Where frames of Python functions keep their locals (3.11 and newer; before, frames are objects). */
  readonly stacks: readonly AddressRange[];
  readonly frames: FrameLocals;
}

export function buildGraph(copy: HeapCopy, layout: HeapLayout, places: RootPlaces): ObjectGraph {
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
  // A frame that runs is its thread's, though tracebacks and the frame that it called know it, too.
  const running = places.frames.runningObjects.map((frame) => index.at(frame));
  const isRunning = new Uint8Array(running.length > 0 ? nodes : 0);
  for (const node of running) {
    isRunning[node] = 1;
  }
  const references = new References(copy, layout, types, index, {
    edge:
      running.length === 0
        ? (to) => edges.push(to)
        : (to) => {
            if (isRunning[to] === 0) {
              edges.push(to);
            }
          },
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
  const modules = index.at(places.modules);
  const roots = findRoots(copy, types, references, edges, partial, {
    modules,
    stacks: places.stacks,
    frames: places.frames.runningObjects
      .map((frame) => index.at(frame))
      .filter((node) => node !== 0),
  });
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
    frames: places.frames,
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

interface FoundPlaces extends Pick<RootPlaces, "stacks"> {
  readonly modules: NodeId;
  /** Frame objects that run. */
  readonly frames: readonly NodeId[];
}

/**
 * Objects that each root refers to. A root is only who has more references than the graph accounts for:
 * words on stacks and in variables are often of the past, and tell nothing but where a reference may be.
 */
function findRoots(
  copy: HeapCopy,
  types: TypeTable,
  references: References,
  edges: EdgeColumn,
  graph: HeapGraph,
  { modules, stacks, frames }: FoundPlaces,
): NodeId[][] {
  const { nodes } = graph;
  const place = new Uint8Array(nodes).fill(ROOT_NATIVE);
  const mark = (range: AddressRange, kind: number): void => {
    const from = edges.length;
    references.range(range.start, range.end - range.start);
    for (let edge = from; edge < edges.length; edge++) {
      place[edges.at(edge)] = kind;
    }
    edges.shorten(from);
  };
  for (const range of variablesOf(copy)) {
    mark(range, ROOT_VARIABLES);
  }
  for (const range of stacks) {
    mark(range, ROOT_STACKS);
  }
  const known = new Uint32Array(nodes);
  for (let edge = 0; edge < edges.length; edge++) {
    known[edges.at(edge)] += 1;
  }
  const roots: NodeId[][] = Array.from({ length: FIRST_OBJECT }, () => []);
  const reached = new Reached(graph);
  if (modules !== 0) {
    const entries = graph.edgeTo.subarray(graph.edgeStart[modules], graph.edgeStart[modules + 1]);
    roots[ROOT_MODULES] = [
      ...new Set(entries.filter((node) => types.shapes[graph.type[node]] === SHAPE_MODULE)),
      modules,
    ];
    reached.from(modules);
  }
  for (const frame of frames) {
    roots[ROOT_STACKS]?.push(frame);
    reached.from(frame);
  }
  for (let node = FIRST_OBJECT; node < nodes; node++) {
    const count = copy.words[copy.index(graph.address[node])];
    if (reached.has(node) && place[node] !== ROOT_STACKS) {
      continue;
    }
    if (count > known[node] || count >= LEAST_IMMORTAL) {
      const frame = types.shapes[graph.type[node]] === SHAPE_FRAME;
      (roots[frame ? ROOT_STACKS : place[node]] as NodeId[]).push(node);
      reached.from(node);
    }
  }
  for (let node = FIRST_OBJECT; node < nodes; node++) {
    if (!reached.has(node)) {
      (roots[ROOT_GARBAGE] as NodeId[]).push(node);
      reached.from(node);
    }
  }
  return roots;
}

/** .data and .bss of everything that is loaded. */
function variablesOf(copy: HeapCopy): AddressRange[] {
  let data = 0;
  return copy.mappings.flatMap(({ start, end, path, inode, writable }) => {
    // Variables without a value in the file (.bss) follow those that have one.
    const variables = writable && (inode !== 0 || (path === "" && start === data));
    data = variables && inode !== 0 ? end : 0;
    return variables ? copy.resident(start, end) : [];
  });
}

/** What is reached from the nodes that were named so far. */
class Reached {
  readonly #reached: Uint8Array;
  readonly #stack: Uint32Array;

  constructor(readonly graph: HeapGraph) {
    this.#reached = new Uint8Array(graph.nodes);
    this.#stack = new Uint32Array(graph.nodes);
  }

  has(node: NodeId): boolean {
    return this.#reached[node] === 1;
  }

  from(node: NodeId): void {
    const { edgeStart, edgeTo } = this.graph;
    const reached = this.#reached;
    const stack = this.#stack;
    let depth = 0;
    if (reached[node] === 0) {
      reached[node] = 1;
      stack[depth++] = node;
    }
    while (depth > 0) {
      const at = stack[--depth];
      for (let edge = edgeStart[at]; edge < edgeStart[at + 1]; edge++) {
        const to = edgeTo[edge];
        if (reached[to] === 0) {
          reached[to] = 1;
          stack[depth++] = to;
        }
      }
    }
  }
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
