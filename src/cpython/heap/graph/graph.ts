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
import { Retention } from "../../../model/heap/heap_retention.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { wholeRegions } from "../memory/heap_parts.js";
import type { HeapLayout } from "../memory/layout.js";
import type { FrameLocals } from "../objects/frame_locals.js";
import { HeapScan, type ScanFigures } from "../objects/heap_scan.js";
import { OwnedBuffers } from "../objects/owned_buffers.js";
import { findStorages, type Storages } from "../objects/storages.js";
import { TypeTable } from "../objects/type_table.js";
import { EdgeColumn } from "./edge_column.js";
import { NodeColumns, type ObjectColumns, objectsOf } from "./node_columns.js";
import { NodeIndex } from "./node_index.js";
import { References } from "./references.js";
import { ContainerRenewal, renewContainers } from "./reread_containers.js";
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
  readonly copy: HeapPages;
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

/** Usually fewer; with more, the column of edges grows. */
const EDGES_A_NODE = 2;
/** In place of an only referrer that is not found yet. */
const EXPECTED = 0xffffffff;

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

interface GraphOptions {
  /**
   * If the program keeps running, its containers may be read again, and, for another lookup of all names, values
   * that are newer than the copy.
   */
  readonly beforeReferences?: (renew: (newValues: boolean) => void) => void;
  readonly mostObjects?: Objects;
}

/** Throws TM-E051 if there are more than `mostObjects`. */
export function buildGraph(
  copy: HeapPages,
  layout: HeapLayout,
  places: RootPlaces,
  { beforeReferences = () => {}, mostObjects = Number.POSITIVE_INFINITY }: GraphOptions = {},
): ObjectGraph {
  const types = new TypeTable(copy, layout);
  const found = new NodeColumns(types, layout, copy.bytes, mostObjects);
  const figures = new HeapScan(copy, layout, types, found).run(wholeRegions(copy));
  let renewal: ContainerRenewal | null = null;
  beforeReferences((newValues) => {
    const objects = objectsOf(found.view());
    renewal = copy.isLive ? new ContainerRenewal(copy, layout, types) : null;
    const gone = copy.isLive
      ? []
      : renewContainers(copy, layout, types, objects.address, objects.type);
    if (newValues) {
      const values = renewValues(copy, layout, types, objects, gone, places.stacks);
      found.insert(values);
      places.frames.forget();
    }
  });
  const columns = found.view();
  const index = new NodeIndex(copy, objectsOf(columns).address, FIRST_OBJECT);
  const nodes = nodesOf(copy, types, columns);
  const heap = { copy, layout, types, index };
  const { references, edges, edgeStart, onlyReferrer, counts, buffers } = followReferences(
    heap,
    nodes,
    places.frames,
    renewal,
  );
  const { count, end, address, type, shallow } = nodes;
  const partial: HeapGraph = {
    nodes: count,
    firstObject: FIRST_OBJECT,
    address,
    type,
    shallow,
    edgeStart,
    edgeTo: edges.view(),
    onlyReferrer,
    typeNames: [],
  };
  const modules = index.at(places.modules);
  const { roots, known, spare } = findRoots(copy, types, references, edges, partial, {
    end,
    counts,
    modules,
    index,
    stacks: places.stacks,
    frames: places.frames.runningObjects
      .map((frame) => index.at(frame))
      .filter((node) => node !== 0),
  });
  const graph = withRoots(partial, roots, edges, types);
  const threads = index.at(places.threads);
  const paths = pathsFromRoots(graph, threads, spare);
  const tree = new Retention(graph, paths, known, () => findDominators(graph, [known, spare]));
  return {
    graph,
    tree,
    paths,
    copy,
    layout,
    types,
    index,
    figures,
    buffers,
    get garbage() {
      return {
        objects: tree.retainedObjects(ROOT_GARBAGE) - 1,
        bytes: tree.retainedBytes(ROOT_GARBAGE),
      };
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
  readonly room: Uint32Array;
  readonly storages: Storages;
}

function nodesOf(copy: HeapPages, types: TypeTable, columns: ObjectColumns): Nodes {
  const end = columns.address.length;
  const { address, type, shallow } = columns;
  const storages = findStorages(copy, types, address, type, FIRST_OBJECT, end);
  const nodes = { count: end, end, address, type, shallow, room: columns.room, storages };
  const more = storages.addresses.length;
  if (more === 0) {
    return nodes;
  }
  const count = end + more;
  const kind = new Uint32Array(more).fill(types.addKind("torch storage"));
  return {
    ...nodes,
    count,
    address: joined(new Float64Array(count), address, storages.addresses),
    type: joined(new Uint32Array(count), type, kind),
    shallow: joined(new Float64Array(count), shallow, storages.bytes),
  };
}

function joined<Column extends Float64Array | Uint32Array>(
  whole: Column,
  first: ArrayLike<number>,
  others: ArrayLike<number>,
): Column {
  whole.set(first);
  whole.set(others, first.length);
  return whole;
}

interface Followed {
  readonly references: References;
  readonly edges: EdgeColumn;
  /** By node: index of its first edge. */
  readonly edgeStart: Uint32Array;
  readonly onlyReferrer: Uint32Array;
  /** By node: the reference count of an object. */
  readonly counts: Uint32Array;
  readonly buffers: OwnedBuffers;
}

/**
 * All references, and the buffers that objects own, which count for their owners in `shallow`. `renewal`: containers
 * are read again just before they are visited.
 */
function followReferences(
  { copy, layout, types, index }: Pick<ObjectGraph, "copy" | "layout" | "types" | "index">,
  { count, end, address, type, shallow, room, storages }: Nodes,
  frames: FrameLocals,
  renewal: ContainerRenewal | null,
): Followed {
  const edges = new EdgeColumn(count * EDGES_A_NODE);
  const buffers = new OwnedBuffers();
  const edgeStart = new Uint32Array(count + 1);
  let current = 0;
  // A running frame belongs to its thread, although tracebacks and the called frame also refer to it.
  const running = frames.runningObjects.map((frame) => index.at(frame));
  const isRunning = new Uint8Array(running.length > 0 ? count : 0);
  for (const node of running) {
    isRunning[node] = 1;
  }
  const onlyReferrer = new Uint32Array(count);
  const push = (to: NodeId) => {
    if (onlyReferrer[to] === EXPECTED) {
      onlyReferrer[to] = current;
    } else {
      edges.push(to);
    }
  };
  const references = new References(copy, layout, types, index, {
    edge:
      running.length === 0
        ? push
        : (to) => {
            if (isRunning[to] === 0) {
              push(to);
            }
          },
    owns: (buffer, bytes) => {
      buffers.add(buffer, current);
      addAt(shallow, current, bytes);
    },
  });
  const hasTensors = storages.ofTensor.size > 0;
  expectReferrers(onlyReferrer, { end, type, room }, references);
  for (let node = FIRST_OBJECT; node < end; node++) {
    edgeStart[node] = edges.length;
    const row = type[node] ?? 0;
    if (references.isWithout(row)) {
      continue; // `room` has its count
    }
    current = node;
    const object = address[node] ?? 0;
    const at = copy.index(object);
    const count = copy.words[at] ?? 0;
    renewal?.visit(object, row, at);
    references.visit(object, row, room[node] ?? 0);
    room[node] = count; // how much room there is matters no more
    const storage = hasTensors ? storages.ofTensor.get(node) : undefined;
    if (storage !== undefined) {
      edges.push(storage);
    }
  }
  edgeStart.fill(edges.length, end);
  forgetExpected(onlyReferrer);
  for (const [row, data] of storages.addresses.entries()) {
    buffers.add(data, end + row);
  }
  return { references, edges, edgeStart, onlyReferrer, counts: room, buffers };
}

// Each loop over all nodes is a function of its own: V8 compiles a function again for each of its loops that runs for long.

/** Marks the objects that refer to nothing and have one reference. */
function expectReferrers(
  onlyReferrer: Uint32Array,
  { end, type, room }: Pick<Nodes, "end" | "type" | "room">,
  references: References,
): void {
  for (let node = FIRST_OBJECT; node < end; node++) {
    // Of an object that refers to nothing, `room` is its count.
    if (room[node] === 1 && references.isWithout(type[node] ?? 0)) {
      onlyReferrer[node] = EXPECTED;
    }
  }
}

function forgetExpected(onlyReferrer: Uint32Array): void {
  for (let node = FIRST_OBJECT; node < onlyReferrer.length; node++) {
    if (onlyReferrer[node] === EXPECTED) {
      onlyReferrer[node] = 0;
    }
  }
}

/** `threads`: as in {@link ObjectGraph}. */
function pathsFromRoots(graph: HeapGraph, threads: NodeId, spare: Uint32Array): PathTree {
  const registers = [threads, ...registersOf(graph)].filter((node) => node !== 0);
  return searchPaths(
    graph,
    [ROOT_MODULES, ROOT_STACKS, ...registers, ROOT_VARIABLES, ROOT_NATIVE, ROOT_GARBAGE],
    registers,
    spare,
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
function withRoots(
  graph: HeapGraph,
  roots: readonly NodeId[][],
  edges: EdgeColumn,
  types: TypeTable,
): HeapGraph {
  const { edgeStart } = graph;
  const kinds = roots.slice(1).map((_, kind) => kind + 1);
  const first = new Uint32Array(kinds.length + roots.reduce((sum, nodes) => sum + nodes.length, 0));
  let at = 0;
  for (const [kind, nodes] of roots.entries()) {
    edgeStart[kind] = at;
    for (const node of kind === ROOT ? kinds : nodes) {
      first[at++] = node;
    }
  }
  for (let node = FIRST_OBJECT; node <= graph.nodes; node++) {
    edgeStart[node] = (edgeStart[node] ?? 0) + first.length;
  }
  const typeNames = Array.from({ length: types.count }, (_, row) => types.name(row));
  return { ...graph, edgeTo: edges.viewAfter(first), typeNames };
}
