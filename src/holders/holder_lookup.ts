/**
 * Finds what holds the sampled addresses of growing sites, using the graph of the program's objects.
 *
 *     address ──> object there, or the object that owns the buffer there
 *             ──> its path from a root:  modules, stacks, variables    held
 *                                       unreachable cycles           garbage
 *                                       nothing, or a stray count    neither: native code has it
 *             ──> the container at which the paths to them split: the site's holder
 */

import { rootPlaces } from "../cpython/heap/census/paused_reads.js";
import { countGraph } from "../cpython/heap/census/type_counts.js";
import { buildGraph, ROOT_MODULES, ROOT_STACKS } from "../cpython/heap/graph/graph.js";
import {
  FIRST_OBJECT,
  findObjects,
  type Holder,
  holderOf,
  itselfAsHolder,
  nodesOfType,
  type ObjectGraph,
} from "../cpython/heap/index.js";
import { copyRanges, planCopy } from "../cpython/heap/memory/copy_plan.js";
import { HeapWindows } from "../cpython/heap/memory/heap_windows.js";
import { heapLayout } from "../cpython/heap/memory/layout.js";
import { blockBytes } from "../cpython/heap/memory/memory_blocks.js";
import { type CodeUses, CodeUsesReader } from "../cpython/heap/objects/code_uses.js";
import { readWords } from "../cpython/heap/objects/small_objects.js";
import {
  SHAPE_DICT,
  SHAPE_LIST,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
} from "../cpython/heap/objects/type_table.js";
import { locatePython, type PythonRuntime } from "../cpython/interpreter/locate.js";
import { openProcessMemory } from "../linux/index.js";
import type { Memory } from "../linux/memory/memory.js";
import { threadCpu } from "../linux/this_process/clock.js";
import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import type { Address, Bytes, Objects, Pid } from "../model/base/units.js";
import { orNull, processGone, TidemarkError } from "../model/errors/errors.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { pathTo, rootOf } from "../model/heap/heap_paths.js";
import { handlesSite, librarySite } from "../model/profile/lookup_sites.js";
import { censusBatch } from "../recording/census_batch.js";
import type { CensusBatch, HolderBatch, HolderRow } from "../recording/types.js";
import { namedHolder } from "./cell_results.js";
import { collectorOf } from "./collector_state.js";
import { conservativeOwners } from "./conservative_owners.js";
import { isOwnFile, puttersInto } from "./container_putters.js";
import { entrySpread } from "./entry_spread.js";
import { graphHolder, hasTensors, isOfGraph } from "./graph_holder.js";
import { makerOf } from "./handle_makers.js";
import { evenly, handleObjects, MOST_OF_TYPE } from "./handle_objects.js";
import { openerOf } from "./handle_openers.js";
import { boundOf } from "./holder_bound.js";
import { type HoldingKind, holdingKindOf } from "./holding_kind.js";
import { kernelCells } from "./kernel_cells.js";
import { libraryObjects, type ObjectsOfType } from "./library_objects.js";
import { localsOfThreads } from "./locals_of_threads.js";
import { informativeness, isConclusive, withNamedHolders } from "./lookup_quality.js";
import type { LookupRequest, LookupSite, SampledStack, UnsampledTraces } from "./lookup_request.js";
import { structureOwners, UNSEARCHED } from "./native_structures.js";
import { stillReferenced } from "./still_referenced.js";
import { stillRunning } from "./still_running.js";

/**
 * If fewer than this share seem to be held, they are looked up again at once, provided the copy is not larger
 * than this.
 */
const LARGEST_AGAIN: Bytes = 2 ** 28;
const MOST_SNAPSHOTS = 2;
/**
 * Maximum number of lookups for objects that are replaced all the time, which may be under construction or
 * already freed during a lookup.
 */
const MOST_LOOKUPS_OF_NEW = 3;
/** Share of the addresses that must be held to name the holder. */
const LEAST_FOUND = 0.2;
/** Maximum number of objects per container entry; with more, the entries themselves grow. */
const MOST_OF_ENTRY = 100;
/** Memory that a lookup may take is proportional to the number of objects: about 65 bytes for each. */
const MOST_OBJECTS: Objects = 5_000_000;

interface HolderAnswer {
  /** Both null if the program cannot be read (ended, not permitted, unknown, too large). */
  readonly batch: HolderBatch | null;
  readonly census: CensusBatch | null;
  /** In the graph. */
  readonly objects: Objects;
  /** Why a heap is too large to be looked up; null: it is not. */
  readonly refusal: string | null;
}

export function lookUpHolders(request: LookupRequest, mostObjects = MOST_OBJECTS): HolderAnswer {
  try {
    const memory = openProcessMemory(request.pid);
    try {
      return lookUpAgain(memory, request, mostObjects);
    } finally {
      memory.close();
    }
  } catch (error) {
    if (error instanceof TidemarkError) {
      const refusal = error.id === "TM-E051" ? error.what : null;
      return { batch: null, census: null, objects: 0, refusal };
    }
    throw error;
  }
}

/** Before the adding function is known. `objects`: objects that would be freed with the holder. */
type FoundRow = Omit<HolderRow, "putters"> & { readonly objects: Objects };
type Lookup = ReturnType<typeof lookUp>;

/**
 * If a large dict grew while it was copied, or a holder was replaced, objects seem to have no holder. Another
 * lookup happens at a different moment and is faster, because its code is warm. Objects held by C code look the
 * same each time.
 */
function lookUpAgain(memory: Memory, request: LookupRequest, mostObjects: Objects): HolderAnswer {
  const { sites, mostMs = Number.POSITIVE_INFINITY } = request;
  const cpu = threadCpu();
  // A program with tensors replaces its results at each step; their memory is not from Python's allocator.
  const isAnew =
    sites.some(({ swelling }) => swelling !== null) ||
    (sites.some(({ python }) => !python) && loadsTensors(memory));
  let best: Lookup = lookUp(memory, request, isAnew, mostObjects);
  const mostLookups = isAnew ? MOST_LOOKUPS_OF_NEW : MOST_SNAPSHOTS;
  for (let lookup = 1; lookup < mostLookups && !isConclusive(best.batch.rows, sites); lookup++) {
    const expectedMs = cpu() * (1 + 1 / lookup);
    if (best.copiedBytes > LARGEST_AGAIN || expectedMs > mostMs || !memory.refresh()) {
      break;
    }
    const next = orNull(() => lookUp(memory, request, true, mostObjects));
    if (
      next !== null &&
      informativeness(next.batch.rows, sites) > informativeness(best.batch.rows, sites)
    ) {
      best = next;
    }
  }
  const rows = withNamedHolders(best.batch.rows, sites);
  return { ...best, batch: { ...best.batch, rows }, refusal: null };
}

function loadsTensors({ mappings }: Memory): boolean {
  return mappings.some(({ path }) => /\/libtorch_python\.so/.test(path));
}

/** `newValues`: includes values that are replaced all the time. */
function lookUp(memory: Memory, request: LookupRequest, newValues: boolean, mostObjects: Objects) {
  const { objects, python, copiedBytes, demandRunning } = graphOf(memory, newValues, mostObjects);
  const { pid, sites, unsampled } = request;
  const codes = once(() => ownCode(objects, python));
  const ofLibraries = unsampled === null ? [] : libraryObjects(objects, unsampled.libraries);
  const cells = kernelCells(objects);
  const batch: HolderBatch = {
    pid,
    collector: collectorOf(python),
    rows: [
      ...rowsOf(objects, sites),
      ...(unsampled === null ? [] : handlesRows(objects, pid, unsampled)),
      ...ofLibraries.flatMap((same) => libraryRow(objects, pid, same, unsampled?.sampled ?? [])),
    ].map(({ objects: held, ...row }) => {
      const isNested = held > MOST_OF_ENTRY * Math.max(1, row.entries) && row.entries > 0;
      const putters = row.path.length === 0 ? [] : puttersInto(row.path, codes(), isNested);
      return { ...row, putters };
    }),
    ...(cells.length > 0 ? { cells } : {}),
  };
  const libraryTypes = new Set(ofLibraries.map(({ type }) => type));
  const census = censusBatch(pid, countGraph(objects), libraryTypes);
  if (objects.copy.isLive) {
    demandRunning(); // reads after the program has ended return zeros, which would look like garbage
  }
  return { batch, census, copiedBytes, objects: objects.graph.nodes - FIRST_OBJECT };
}

function ownCode(objects: ObjectGraph, python: PythonRuntime): CodeUses[] {
  const functions = nodesOfType(objects, "function");
  const addresses = functions.map((node) => float64At(objects.graph.address, node));
  return new CodeUsesReader(python, objects.copy).read(addresses, isOwnFile);
}

/** The program keeps running: some objects that change are torn, but most long-lived ones are not. */
function graphOf(
  memory: Memory,
  newValues: boolean,
  mostObjects: Objects,
): {
  readonly objects: ObjectGraph;
  readonly python: PythonRuntime;
  readonly copiedBytes: Bytes;
  /** Throws if the program has ended. */
  readonly demandRunning: () => void;
} {
  const python = locatePython(memory);
  const layout = heapLayout(Number(/^3\.(\d+)/.exec(python.version)?.[1]));
  if (layout === null) {
    throw new Error(`no heap layout for Python ${python.version}`); // the locator supports no other versions
  }
  const { leftOut, bytes } = planCopy(memory, layout);
  const runs = stillRunning(python);
  const copy = new HeapWindows(memory, copyRanges(memory, leftOut));
  const demandRunning = () => {
    if (!runs()) {
      throw processGone(memory.pid ?? 0);
    }
  };
  demandRunning();
  const objects = buildGraph(copy, layout, rootPlaces(python, copy), {
    mostObjects,
    beforeReferences: (renew) => {
      if (copy.isLive) {
        demandRunning();
      }
      if (runs()) {
        renew(newValues);
        demandRunning();
      }
    },
  });
  return { objects, python, copiedBytes: bytes, demandRunning };
}

/** Passes over the heap are expensive, so one search covers the addresses of all sites. */
function rowsOf(objects: ObjectGraph, sites: readonly LookupSite[]): FoundRow[] {
  const addresses = sites.flatMap((site) => site.addresses);
  const owners = new Map(
    findObjects(objects, addresses).map(({ address, node }) => [address, node]),
  );
  const unsearched = new Set<Address>();
  const lookUpOwners = (ownersOf: typeof conservativeOwners, unknown: readonly Address[]) => {
    const startOf = (address: Address) =>
      objects.graph.address[owners.get(address) ?? 0] || address;
    ownersOf(objects, unknown.map(startOf)).forEach((node, n) => {
      if (node === UNSEARCHED) {
        unsearched.add(itemAt(unknown, n));
      } else if (node !== 0) {
        owners.set(itemAt(unknown, n), node);
      }
    });
  };
  lookUpOwners(
    conservativeOwners,
    addresses.filter((address) => !owners.has(address)),
  );
  // No known object holds it, or only an object that C code refers to, such as bytes behind an Arrow buffer.
  const isLoose = (address: Address) => {
    const owner = owners.get(address);
    return owner === undefined || holdingKindOf(objects, owner) === "native";
  };
  const isUnheld = (site: LookupSite) =>
    site.addresses.filter(isLoose).length > site.addresses.length / 2;
  // Memory kept by an autograd graph is also deep, and is attributed by its tensors.
  const graphs = hasTensors(objects) ? once(() => graphHolder(objects)) : null;
  const isDeep = sites.some(isUnheld) && graphs === null;
  if (isDeep) {
    lookUpOwners(structureOwners, addresses.filter(isLoose));
  }
  const unheld = addresses.filter(isLoose).flatMap((address) => owners.get(address) ?? []);
  const places = new Set(unheld.map((node) => float64At(objects.graph.address, node)));
  const referenced = stillReferenced(objects.copy.source, places);
  return sites.map((site) => {
    const searched = site.addresses.filter((address) => !unsearched.has(address));
    return rowOf(objects, { ...site, addresses: searched }, { owners, referenced }, isDeep, graphs);
  });
}

interface FoundOwners {
  readonly owners: ReadonlyMap<Address, NodeId>;
  /** Addresses of the owners that nothing holds, if a word in the program's memory refers to them. */
  readonly referenced: ReadonlySet<Address>;
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function rowOf(
  objects: ObjectGraph,
  { site, python, addresses, swelling }: LookupSite,
  { owners, referenced }: FoundOwners,
  isDeep: boolean,
  graphs: (() => Holder | null) | null,
): FoundRow {
  const found = addresses.flatMap((address) => owners.get(address) ?? []);
  const isHeld = (node: NodeId) => holdingKindOf(objects, node) === "held";
  // An object that is replaced all the time may no longer be at its address; a word that still points there is
  // coincidence.
  const isLarge = (node: NodeId) =>
    swelling !== null && float64At(objects.graph.shallow, node) >= swelling.least / 2;
  const newBlocks =
    swelling !== null && !found.some((node) => isHeld(node) && isLarge(node))
      ? newest(objects, swelling.least, swelling.most)
      : [];
  const moved = swelling !== null && (newBlocks.length > 0 || !found.some(isHeld));
  const nodes = moved ? newBlocks : found;
  const ways = nodes.map((node) => holdingKindOf(objects, node));
  const count = (wanted: HoldingKind) => ways.filter((way) => way === wanted).length;
  const held = count("held");
  const garbage = count("garbage");
  // An unknown part of an object does not show who holds it. A malloc block does, and so does a block of
  // Python's allocator that contains no object. A block that moved and was not found shows nothing either.
  const isRaw = (address: Address) =>
    !owners.has(address) && blockBytes(objects.copy, objects.layout, address) > 0;
  const raw = python && isDeep && !moved ? addresses.filter(isRaw).length : 0;
  const looked = python || moved ? nodes.length + raw : addresses.length;
  const unknown = looked - held - garbage;
  const isReferenced = (node: NodeId, n: number) =>
    ways[n] === "native" && (moved || referenced.has(float64At(objects.graph.address, node)));
  // A block that was unmapped meanwhile shows nothing.
  const isGone = (address: Address) =>
    !owners.has(address) && readWords(objects.copy.source, address, 1) === null;
  const gone = python || moved ? 0 : addresses.filter(isGone).length;
  const unreferenced = Math.max(0, unknown - nodes.filter(isReferenced).length - gone);
  const ofGraphs = unknown > looked / 2 ? graphs : null;
  const heldNodes = nodes.filter((_, n) => ways[n] === "held");
  // The holder of a few is not the holder of the site's memory.
  const ofMost = held >= LEAST_FOUND * looked ? heldNodes : [];
  const holder =
    ofGraphs === null
      ? (namedHolder(objects, ofMost) ?? localsOfThreads(objects, ofMost))
      : ofGraphs();
  const withGraph = heldNodes.filter((node) => isOfGraph(objects, node)).length;
  const graph = withGraph + (ofGraphs === null ? 0 : unknown);
  const counts = { looked, held, garbage, graph, unreferenced };
  const spread =
    holder === null || moved ? null : entrySpread(objects.paths, holder.node, heldNodes);
  return {
    site,
    madeAt: null,
    ...counts,
    ...wordsOf(objects, holder),
    ...(spread === null ? {} : { entrySpread: spread }),
  };
}

/** Types whose table grows with their contents; a torn one may seem to have any size. */
const WITH_TABLE: ReadonlySet<number> = new Set([
  SHAPE_LIST,
  SHAPE_DICT,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
]);

/**
 * Objects of such a size that are reachable by name; others are freed or still under construction. A name in a module
 * outlasts locals, which also hold parts of the successor. None if there is more than one such object and its successor.
 */
function newest(objects: ObjectGraph, least: Bytes, most: Bytes): NodeId[] {
  const { graph, types, paths, frames } = objects;
  const nodes: NodeId[] = [];
  for (let node = graph.firstObject; node < graph.nodes; node++) {
    const own = float64At(graph.shallow, node);
    const shape = types.of(uint32At(graph.type, node)).shape;
    if (own >= least && own <= most && !WITH_TABLE.has(shape)) {
      nodes.push(node);
    }
  }
  // Up to 3.10 a frame is an object in the path.
  const isFrame = (one: NodeId) => frames.wordsTo(float64At(graph.address, one)) !== null;
  const ofModules = nodes.filter((node) => rootOf(paths, node) === ROOT_MODULES);
  const ofFrames = nodes.filter((node) => {
    const [root, ...way] = pathTo(paths, node);
    return root === ROOT_STACKS && way.slice(0, 2).some(isFrame);
  });
  const named = ofModules.length > 0 ? ofModules : ofFrames;
  return named.length > 2 ? [] : named;
}

/**
 * The holder of most of the program's growing open files, sockets, mappings or threads, and the stack that
 * creates them; none if they are few and no stack is known to open descriptors.
 */
function handlesRows(
  objects: ObjectGraph,
  pid: Pid,
  { growing, opened, sampled }: UnsampledTraces,
): FoundRow[] {
  const { type, nodes } = handleObjects(objects, growing);
  const madeAt = openerOf(pid, type, opened) ?? makerOf(objects, nodes, sampled);
  if (nodes.length === 0 && madeAt === null) {
    return [];
  }
  const found = heldOf(objects, nodes);
  // Nothing else keeps threads; they end when their function does.
  const isRunning = type === THREAD && found.path.length === 0 && objects.threads !== 0;
  const register = isRunning ? wordsOf(objects, itselfAsHolder(objects, objects.threads)) : {};
  return [{ site: handlesSite(pid, type), madeAt, ...found, ...register }];
}

const THREAD = "threading.Thread";

/**
 * The holder of objects behind which a library keeps its own memory, and the stack that creates them; none if
 * there is no common holder, because a library's own objects, such as functions, are everywhere.
 */
function libraryRow(
  objects: ObjectGraph,
  pid: Pid,
  { type, nodes }: ObjectsOfType,
  sampled: readonly SampledStack[],
): FoundRow[] {
  const some = evenly(nodes, MOST_OF_TYPE);
  const found = heldOf(objects, some);
  return found.path.length === 0
    ? []
    : [{ site: librarySite(pid, type), madeAt: makerOf(objects, some, sampled), ...found }];
}

function heldOf(objects: ObjectGraph, nodes: readonly NodeId[]): Omit<FoundRow, "site" | "madeAt"> {
  const held = nodes.filter((node) => holdingKindOf(objects, node) === "held");
  const counts = { looked: nodes.length, held: held.length, garbage: 0, graph: 0 };
  return { ...counts, ...wordsOf(objects, holderOf(objects, held)) };
}

function wordsOf(
  objects: ObjectGraph,
  best: Holder | null,
): Pick<FoundRow, "path" | "type" | "retainedBytes" | "entries" | "bound" | "objects"> {
  return {
    path: best?.path ?? [],
    type: best?.type ?? "",
    retainedBytes: best?.retainedBytes ?? 0,
    entries: best?.entries ?? 0,
    bound: best ? boundOf(objects, best) : 0,
    objects: best?.objects ?? 0,
  };
}
