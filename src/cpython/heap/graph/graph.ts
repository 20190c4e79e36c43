/**
 * The graph of a program's objects, from a copy of its memory:
 *
 *   copy ── scan ──> nodes ── references ──> edges ── roots ──> graph ── dominators ──> retained sizes
 *
 * Roots are the contents of sys.modules, and objects with more references than the graph accounts for, which
 * are held by a local of a running function, a C variable, or native memory. Objects that no root leads to are
 * referenced only by each other: garbage that waits for the collector.
 */

import type { AddressRange } from "../../../linux/memory/memory.js";
import { addAt } from "../../../model/base/columns.js";
import type { Address, Bytes, Objects } from "../../../model/base/units.js";
import { findDominators } from "../../../model/heap/heap_dominators.js";
import type { DominatorTree, HeapGraph, NodeId } from "../../../model/heap/heap_graph.js";
import { type PathTree, searchPaths } from "../../../model/heap/heap_paths.js";
import { retainedByGroup } from "../../../model/heap/heap_retained.js";
import type { HeapCopy } from "../memory/heap_copy.js";
import { wholeRegions } from "../memory/heap_parts.js";
import type { HeapLayout } from "../memory/layout.js";
import type { FrameLocals } from "../objects/frame_locals.js";
import { HeapScan, type ScanFigures } from "../objects/heap_scan.js";
import { OwnedBuffers } from "../objects/owned_buffers.js";
import { findStorages, type Storages } from "../objects/storages.js";
import { TypeTable } from "../objects/type_table.js";
import { EdgeColumn } from "./edge_column.js";
import { NodeColumns, type ObjectColumns, withObjects } from "./node_columns.js";
import { NodeIndex } from "./node_index.js";
import { References } from "./references.js";
import { renewContainers } from "./reread_containers.js";
import { renewValues } from "./reread_values.js";
import {
  FIRST_OBJECT,
  findRoots,
  ROOT,
  ROOT_GARBAGE,
  ROOT_MODULES,
  ROOT_NATIVE,
  ROOT_STACKS,
  ROOT_VARIABLES,
} from "./roots.js";

export {
  FIRST_OBJECT,
  ROOT_GARBAGE,
  ROOT_MODULES,
  ROOT_NAMES,
  ROOT_NATIVE,
  ROOT_STACKS,
} from "./roots.js";

export interface ObjectGraph {
  readonly graph: HeapGraph;
  readonly tree: DominatorTree;
  readonly paths: PathTree;
  readonly copy: HeapCopy;
  readonly layout: HeapLayout;
  readonly types: TypeTable;
  readonly index: NodeIndex;
  readonly figures: ScanFigures;
  readonly buffers: OwnedBuffers;
  /** Objects that are referenced only by each other. */
  readonly garbage: { readonly objects: Objects; readonly bytes: Bytes };
  /** The first node that is not a Python object; the rest are storages of tensors. */
  readonly end: NodeId;
  /** sys.modules; 0 if it was not found. */
  readonly modules: NodeId;
  /** threading._active, the running threads; 0 if it was not found. */
  readonly threads: NodeId;
  readonly frames: FrameLocals;
}

/** Peak memory of the analysis of that many objects, without the copy of the heap. */
export function graphMemory(objects: number): Bytes {
  return objects * 300;
}

export interface RootPlaces {
  /** sys.modules. */
  readonly modules: Address;
  /** threading._active: it leads to everything passed to a thread, but does not show the origin; 0: none. */
  readonly threads: Address;
  /** Memory in which frames of Python functions keep their locals (3.11 and newer; before, frames are objects). */
  readonly stacks: readonly AddressRange[];
  readonly frames: FrameLocals;
}

/**
 * `beforeReferences`: if the program keeps running, its containers may be read again, and, for another lookup
 * of all names, values that are newer than the copy.
 */
export function buildGraph(
  copy: HeapCopy,
  layout: HeapLayout,
  places: RootPlaces,
  beforeReferences: (renew: (newValues: boolean) => void) => void = () => {},
): ObjectGraph {
  const types = new TypeTable(copy, layout);
  const found = new NodeColumns(types, layout);
  const figures = new HeapScan(copy, layout, types, found).run(wholeRegions(copy));
  let columns = found.view();
  beforeReferences((newValues) => {
    const gone = renewContainers(copy, layout, types, columns.address, columns.type);
    if (newValues) {
      const values = renewValues(copy, layout, types, columns, gone, places.stacks);
      columns = withObjects(columns, values);
      places.frames.forget();
    }
  });
  const index = new NodeIndex(copy, columns.address, FIRST_OBJECT);
  const nodes = nodesOf(copy, types, columns);
  const heap = { copy, layout, types, index };
  const { references, edges, edgeStart, buffers } = followReferences(heap, nodes, places.frames);
  const { count, end, address, type, shallow } = nodes;
  const partial: HeapGraph = {
    nodes: count,
    firstObject: FIRST_OBJECT,
    address,
    type,
    shallow,
    edgeStart,
    edgeTo: edges.view(),
    typeNames: [],
  };
  const modules = index.at(places.modules);
  const roots = findRoots(copy, types, references, edges, partial, {
    end,
    modules,
    stacks: places.stacks,
    frames: places.frames.runningObjects
      .map((frame) => index.at(frame))
      .filter((node) => node !== 0),
  });
  const graph = withRoots(partial, roots, types);
  const tree = findDominators(graph);
  const threads = index.at(places.threads);
  return {
    graph,
    tree,
    paths: pathsFromRoots(graph, threads),
    copy,
    layout,
    types,
    index,
    figures,
    buffers,
    garbage: {
      objects: tree.retainedObjects(ROOT_GARBAGE) - 1,
      bytes: tree.retainedBytes(ROOT_GARBAGE),
    },
    end,
    modules,
    threads,
    frames: places.frames,
  };
}

/** Columns by node: roots, objects, and from `end` on the storages of tensors. */
interface Nodes {
  readonly count: number;
  readonly end: NodeId;
  readonly address: Float64Array;
  readonly type: Uint32Array;
  /** Size without buffers elsewhere. */
  readonly shallow: Float64Array;
  /** By object, from the first object on. */
  readonly room: Uint32Array;
  readonly storages: Storages;
}

function nodesOf(copy: HeapCopy, types: TypeTable, columns: ObjectColumns): Nodes {
  const end = columns.address.length + FIRST_OBJECT;
  const objectAddress = new Float64Array(end);
  objectAddress.set(columns.address, FIRST_OBJECT);
  const objectType = new Uint32Array(end);
  objectType.set(columns.type, FIRST_OBJECT);
  const storages = findStorages(copy, types, objectAddress, objectType, FIRST_OBJECT, end);
  const count = end + storages.addresses.length;
  const address = new Float64Array(count);
  address.set(objectAddress);
  address.set(storages.addresses, end);
  const type = new Uint32Array(count);
  type.set(objectType);
  if (count > end) {
    type.fill(types.addKind("torch storage"), end);
  }
  const shallow = new Float64Array(count);
  shallow.set(columns.shallow, FIRST_OBJECT);
  shallow.set(storages.bytes, end);
  return { count, end, address, type, shallow, room: columns.room, storages };
}

interface Followed {
  readonly references: References;
  readonly edges: EdgeColumn;
  /** By node: index of its first edge. */
  readonly edgeStart: Uint32Array;
  readonly buffers: OwnedBuffers;
}

/** All references, and the buffers that objects own, which count for their owners in `shallow`. */
function followReferences(
  { copy, layout, types, index }: Pick<ObjectGraph, "copy" | "layout" | "types" | "index">,
  { count, end, address, type, shallow, room, storages }: Nodes,
  frames: FrameLocals,
): Followed {
  const edges = new EdgeColumn();
  const buffers = new OwnedBuffers();
  const edgeStart = new Uint32Array(count + 1);
  let current = 0;
  // A running frame belongs to its thread, although tracebacks and the called frame also refer to it.
  const running = frames.runningObjects.map((frame) => index.at(frame));
  const isRunning = new Uint8Array(running.length > 0 ? count : 0);
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
      buffers.add(buffer, current);
      addAt(shallow, current, bytes);
    },
  });
  for (let node = FIRST_OBJECT; node < end; node++) {
    current = node;
    edgeStart[node] = edges.length;
    references.visit(address[node] ?? 0, type[node] ?? 0, room[node - FIRST_OBJECT] ?? 0);
    const storage = storages.ofTensor.get(node);
    if (storage !== undefined) {
      edges.push(storage);
    }
  }
  edgeStart.fill(edges.length, end);
  for (const [row, data] of storages.addresses.entries()) {
    buffers.add(data, end + row);
  }
  return { references, edges, edgeStart, buffers };
}

/** `threads`: as in {@link ObjectGraph}. */
function pathsFromRoots(graph: HeapGraph, threads: NodeId): PathTree {
  const registers = [threads, ...registersOf(graph)].filter((node) => node !== 0);
  return searchPaths(
    graph,
    [ROOT_MODULES, ROOT_STACKS, ...registers, ROOT_VARIABLES, ROOT_NATIVE, ROOT_GARBAGE],
    registers,
  );
}

/**
 * An event loop leads to everything that waits for a socket or a timer, but does not show the origin. A set of
 * weak references holds nothing; an object reached through it in a copy only has the former address of a
 * member.
 */
const REGISTER =
  /^(?:asyncio\.\w+\.\w*EventLoop|uvloop(?:\.loop)?\.Loop|selectors\.\w+Selector|(?:_weakrefset\.)?WeakSet)$/;

function registersOf({ typeNames, type, nodes }: HeapGraph): NodeId[] {
  const isRegister = Uint8Array.from(typeNames, (name) => (REGISTER.test(name) ? 1 : 0));
  const found: NodeId[] = [];
  if (isRegister.includes(1)) {
    for (let node = FIRST_OBJECT; node < nodes; node++) {
      if (isRegister[type[node] ?? 0] === 1) {
        found.push(node);
      }
    }
  }
  return found;
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
  return new Map([...groups].map(([name, group]) => [name, bytes[group] ?? 0]));
}

/** The same graph with the edges of the roots before those of the objects. */
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
    edgeStart[node] = (graph.edgeStart[node] ?? 0) + extra;
  }
  edgeTo.set(graph.edgeTo, extra);
  const typeNames = Array.from({ length: types.count }, (_, row) => types.name(row));
  return { ...graph, edgeStart, edgeTo, typeNames };
}
