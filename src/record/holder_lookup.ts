/**
 * Sampled addresses of sites that grow -> what holds them, from the graph of the program's objects.
 *
 *     address ──> object there, or the object that owns the buffer there
 *             ──> its way from a root:  modules, stacks, variables   held
 *                                       unreachable cycles           garbage
 *                                       nothing, or a stray count    neither: native code has it
 *             ──> its accumulation point; the one that most addresses share is the site's holder
 */

import { buildGraph, ROOT_GARBAGE, ROOT_NATIVE } from "../cpython/heap/graph.js";
import { copyRanges, HeapCopy, planCopy } from "../cpython/heap/heap_copy.js";
import { describeHolder } from "../cpython/heap/holders.js";
import {
  type FoundObject,
  findHolders,
  type Holder,
  nodesOfType,
  type ObjectGraph,
  StepNames,
} from "../cpython/heap/index.js";
import { heapLayout } from "../cpython/heap/layout.js";
import { rootPlaces } from "../cpython/heap/take.js";
import { locatePython, type PythonRuntime } from "../cpython/locate.js";
import { openProcessMemory } from "../linux/index.js";
import type { Memory } from "../linux/memory.js";
import { TidemarkError } from "../model/errors.js";
import { analysisTooLarge } from "../model/heap_errors.js";
import type { NodeId } from "../model/heap_graph.js";
import { pathTo } from "../model/heap_paths.js";
import type { Address, Bytes } from "../model/units.js";
import { collectorOf } from "./collector.js";
import { conservativeOwners } from "./conservative_owners.js";
import type { LookupRequest, LookupSite } from "./suspect_watch.js";
import type { HolderBatch, HolderRow } from "./types.js";

/** What a lookup may take of this machine's memory. */
const MOST_BYTES: Bytes = 1.5 * 2 ** 30;
/** Of what was looked up, the share that a holder must have to be named. */
const LEAST_SHARE = 0.25;
/** What grows while it is copied. */
const GROWTH = 1.1;
const GROWTH_BYTES: Bytes = 16 * 2 ** 20;
/** Of the ways, what must go through an object for it to be shared. */
const MOST_SHARE = 0.6;
const MOST_TENSORS = 400;

/** null where the program cannot be looked into (gone, not permitted, unknown, too large). */
export function lookUpHolders(request: LookupRequest): HolderBatch | null {
  try {
    const memory = openProcessMemory(request.pid);
    try {
      const { objects, python } = graphOf(memory);
      return {
        pid: request.pid,
        collector: collectorOf(python),
        rows: request.sites.map((site) => rowOf(objects, site)),
      };
    } finally {
      memory.close();
    }
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
}

/** As the program runs on: some of what just changes is torn, and most of what stays is not. Sites that grow
 * ask for what stays. */
function graphOf(memory: Memory): {
  readonly objects: ObjectGraph;
  readonly python: PythonRuntime;
} {
  const python = locatePython(memory);
  const layout = heapLayout(Number(/^3\.(\d+)/.exec(python.version)?.[1]));
  const { leftOut, bytes } = planCopy(memory);
  if (layout === null || bytes > MOST_BYTES / 2) {
    throw analysisTooLarge(0, bytes, MOST_BYTES / 2);
  }
  const copy = new HeapCopy(memory, bytes * GROWTH + GROWTH_BYTES);
  copy.fill(copyRanges(memory, leftOut));
  return { objects: buildGraph(copy, layout, rootPlaces(python, copy)), python };
}

type Way = "held" | "garbage" | "native";

function rowOf(objects: ObjectGraph, { site, python, addresses }: LookupSite): HolderRow {
  const direct = findHolders(objects, addresses);
  const known = new Set(direct.map(({ address }) => address));
  const owners = conservativeOwners(
    objects,
    addresses.filter((address) => !known.has(address)),
  );
  const places = owners.filter((node) => node !== 0).map((node) => addressOf(objects, node));
  const found = [...direct, ...findHolders(objects, places)];
  const ways = found.map(({ node }) => wayOf(objects, node));
  const count = (wanted: Way) => ways.filter((way) => way === wanted).length;
  const held = count("held");
  const garbage = count("garbage");
  // A part of an object that is not known as one says nothing of who holds it; a block of malloc's does.
  const looked = python ? found.length : addresses.length;
  const unknown = looked - held - garbage;
  const graph = unknown > looked / 2 ? tensorsHeld(objects) : null;
  const own = bestHolder(found, Math.max(1, LEAST_SHARE * (held + garbage)));
  const best = graph === null ? (own ?? sharedOnTheWay(objects, found)) : graph.holder;
  return {
    site,
    looked,
    held,
    garbage,
    graph: graph === null ? 0 : unknown,
    path: best?.path ?? [],
    type: best?.type ?? "",
    retainedBytes: best?.retainedBytes ?? 0,
    entries: best?.entries ?? 0,
    bound: best ? boundOf(objects, best.node) : 0,
  };
}

function addressOf({ graph }: ObjectGraph, node: NodeId): Address {
  return graph.address[node] as Address;
}

/** An object that is reached only because its count is too high for what refers to it has its reference
 * from native code: nothing of Python's holds it. */
function wayOf({ paths }: ObjectGraph, node: NodeId): Way {
  const path = pathTo(paths, node);
  if (path[0] === ROOT_GARBAGE) {
    return "garbage";
  }
  return path.length === 0 || (path[0] === ROOT_NATIVE && path.length <= 2) ? "native" : "held";
}

/** The holder that most of them share; null where it has fewer than `least`. */
function bestHolder(found: readonly FoundObject[], least: number): Holder | null {
  const counts = new Map<NodeId, { holder: Holder; count: number }>();
  for (const { holder } of found) {
    if (holder !== null) {
      const known = counts.get(holder.node) ?? { holder, count: 0 };
      known.count += 1;
      counts.set(holder.node, known);
    }
  }
  const [best] = [...counts.values()].sort(
    (a, b) => b.count - a.count || b.holder.retainedBytes - a.holder.retainedBytes,
  );
  return best && best.count >= least ? best.holder : null;
}

/** Where references from elsewhere leave nothing but roots to dominate: the last object that the ways to most
 * of them share. */
function sharedOnTheWay(objects: ObjectGraph, found: readonly FoundObject[]): Holder | null {
  const held = found.filter(({ node }) => wayOf(objects, node) === "held");
  const counts = new Map<NodeId, { count: number; depth: number }>();
  for (const { node } of held) {
    pathTo(objects.paths, node)
      .slice(0, -1)
      .forEach((step, depth) => {
        if (step >= objects.graph.firstObject) {
          counts.set(step, { count: (counts.get(step)?.count ?? 0) + 1, depth });
        }
      });
  }
  const [last] = [...counts]
    .filter(([, { count }]) => count >= MOST_SHARE * held.length && held.length > 1)
    .sort(([, a], [, b]) => b.depth - a.depth);
  return last ? describeHolder(objects, new StepNames(objects), last[0]) : null;
}

/** What a graph keeps has no Python object: it hangs on the tensor at the graph's end. So the container of
 * most tensors is its holder. null where the program has no tensors. */
function tensorsHeld(objects: ObjectGraph): { readonly holder: Holder | null } | null {
  const tensors = nodesOfType(objects, "torch.Tensor");
  if (tensors.length === 0) {
    return null;
  }
  const step = Math.max(1, tensors.length / MOST_TENSORS);
  const some = Array.from({ length: Math.min(tensors.length, MOST_TENSORS) }, (_, i) =>
    Number(objects.graph.address[tensors[Math.floor(i * step)] as NodeId]),
  );
  const found = findHolders(objects, some);
  return { holder: bestHolder(found, some.length / 4) ?? sharedOnTheWay(objects, found) };
}

/** Objects/dequeobject.c and Modules/_functoolsmodule.c: unchanged from 3.9 to 3.15. */
const DEQUE_MAXLEN = 64;
const LRU_CACHE = 72;
const LRU_MAXSIZE = 96;
const MOST_BOUND = 2 ** 40;

/** The bound that the holder, or a cache on the way to it, carries; 0 where none does. */
function boundOf(objects: ObjectGraph, holder: NodeId): number {
  const { graph, copy, paths, index } = objects;
  for (const node of pathTo(paths, holder).reverse()) {
    const type = graph.typeNames[graph.type[node] as number] ?? "";
    const address = graph.address[node] as Address;
    if (node >= graph.firstObject && /(?:^|\.)deque$/.test(type)) {
      return bounded(copy.word(address + DEQUE_MAXLEN));
    }
    if (node >= graph.firstObject && /_lru_cache_wrapper$/.test(type)) {
      // Only where its dict stands where it should: another layout says nothing.
      return index.at(copy.word(address + LRU_CACHE)) === 0
        ? 0
        : bounded(copy.word(address + LRU_MAXSIZE));
    }
  }
  return 0;
}

/** -1, or none, is no bound. */
function bounded(word: number): number {
  return word > 0 && word < MOST_BOUND ? word : 0;
}
