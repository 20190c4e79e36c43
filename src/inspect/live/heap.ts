/** The document of `tidemark heap`: a program's objects. */

import { freemem } from "node:os";
import {
  countObjectsExactly,
  countObjectsTogether,
  findBoxedNumbers,
  findRootPaths,
  largestHolders,
  namedTree,
  nodeAt,
  nodesOfType,
  type ObjectGraph,
  readValue,
  type TakenCensus,
  takeGraph,
  typeRetained,
} from "../../cpython/heap/index.js";
import {
  type CoreMemory,
  findCgroup,
  type Memory,
  openCoreFile,
  openProcessMemory,
  readCommand,
  readLimiting,
  readPageCache,
  readStat,
  startTimeMs,
} from "../../linux/index.js";
import { float64At, itemAt, uint32At } from "../../model/base/columns.js";
import type { Bytes, Millis, Objects } from "../../model/base/units.js";
import type { HeapJson, HeapTypeJson } from "../../model/documents/heap/heap_document.js";
import {
  HEAP_PAGE_SCHEMA,
  type HeapPageDocument,
  type NamedHeapTree,
} from "../../model/documents/heap/heap_page.js";
import { oneLine, TidemarkError } from "../../model/errors/errors.js";
import { coreCutOff, noSuchObject } from "../../model/errors/heap_errors.js";
import type { NodeId } from "../../model/heap/heap_graph.js";
import { gapTexts } from "./core_gaps.js";

interface HeapRequest {
  /** A process id, or the path of a core file. */
  readonly target: string;
  readonly exact: boolean;
  /** Dominators, retained sizes, holders. */
  readonly graph: boolean;
  /** A type or an address: find paths to it from roots. */
  readonly to?: string;
  readonly maxPauseMs: Millis;
  /** Called before a graph is built, with the number of objects and the memory needed. */
  readonly onPlan: (objects: Objects, bytes: Bytes) => void;
  /** With an address in `to`: also read the object's own value. */
  readonly wantsValue: boolean;
  /** Also the dominator tree, for the page. */
  readonly wantsTree: boolean;
  /** With `to`: draws the paths. */
  readonly draw: ((objects: ObjectGraph, nodes: readonly NodeId[]) => string) | null;
}

interface HeapReading {
  readonly document: HeapJson;
  /** null if there is no graph. */
  readonly tree: NamedHeapTree | null;
  readonly dot: string | null;
  readonly value: string | null;
}

const MOST_HOLDERS = 200;

/** Throws TidemarkError if the target cannot be read, runs no Python, or has no object matching `to`. */
export async function heapDocument(request: HeapRequest): Promise<HeapReading> {
  const memory = /^\d+$/.test(request.target)
    ? openProcessMemory(Number(request.target))
    : openCoreFile(request.target);
  try {
    return await snapshot(memory, request);
  } catch (error) {
    throw becauseCutOff(memory, error);
  } finally {
    memory.close();
  }
}

/** The page of a heap that was read with `wantsTree`. */
export function heapPage(target: string, { document, tree }: HeapReading): HeapPageDocument {
  const title = `heap of ${oneLine(document.target.command.join(" ") || target)}`;
  return { schema: HEAP_PAGE_SCHEMA, title, heap: document, tree };
}

/** A missing end explains why no interpreter was found in a core file. */
function becauseCutOff(memory: Memory, error: unknown): unknown {
  const missing = "gaps" in memory ? (memory as CoreMemory).gaps.truncatedBytes : 0;
  const lost = error instanceof TidemarkError && /^TM-E02[245]$/.test(error.id);
  return missing > 0 && lost ? coreCutOff(memory.name, missing) : error;
}

async function snapshot(memory: Memory, request: HeapRequest): Promise<HeapReading> {
  const { maxPauseMs } = request;
  const wantsGraph = request.graph || request.wantsTree || request.to !== undefined;
  const maxBytes = spareMemory();
  const taken =
    request.exact && !wantsGraph
      ? await countObjectsExactly(memory, { maxPauseMs, maxBytes })
      : await countObjectsTogether(memory);
  const document = documentOf(memory, taken);
  if (!wantsGraph) {
    return { document, tree: null, dot: null, value: null };
  }
  try {
    const { objects, pauseMs } = await takeGraph(
      memory,
      { maxPauseMs, maxBytes, onPlan: request.onPlan },
      document.totals.objects,
    );
    return {
      document: { ...document, paused: true, pauseMs, ...graphParts(document, objects, request) },
      tree: request.wantsTree ? namedTree(objects) : null,
      ...answersTo(objects, request),
    };
  } catch (error) {
    // A heap too large for this machine yields only its census, unless paths were requested.
    if (error instanceof TidemarkError && error.id === "TM-E051" && request.to === undefined) {
      return {
        document: { ...document, limits: [...document.limits, error.message] },
        tree: null,
        dot: null,
        value: null,
      };
    }
    throw error;
  }
}

function documentOf(memory: Memory, { census, python, pauseMs }: TakenCensus): HeapJson {
  const { pid } = memory;
  const types = census.typeNames.map((type, row): HeapTypeJson => {
    return {
      type,
      module: census.modules[row] ?? "",
      objects: float64At(census.objects, row),
      bytes: float64At(census.bytes, row) + float64At(census.bufferBytes, row),
      bufferBytes: float64At(census.bufferBytes, row),
      trackedObjects: float64At(census.tracked, row),
    };
  });
  return {
    schema: "tidemark.heap/1",
    target: {
      pid: pid ?? ("leftBy" in memory ? (memory as CoreMemory).leftBy : 0),
      command: pid === null ? [memory.name] : (readCommand(pid) ?? []),
      python: python.version,
      startedMs: pid === null ? 0 : startTimeMs(readStat(pid)?.startTicks ?? 0),
    },
    atMs: Date.now(),
    paused: pauseMs > 0 || pid === null,
    pauseMs,
    totals: {
      objects: types.reduce((sum, row) => sum + row.objects, 0),
      bytes: types.reduce((sum, row) => sum + row.bytes, 0),
    },
    types,
    limits: [...limitsOf(census.figures), ...gapTexts(memory)],
  };
}

function limitsOf({ pools, tornPools }: TakenCensus["census"]["figures"]): string[] {
  const limits: string[] = [];
  if (pools === 0) {
    limits.push(
      "Python's own allocator is disabled (PYTHONMALLOC=malloc): objects were searched in " +
        "malloc's memory, by its chunk headers",
    );
  }
  if (tornPools > 0) {
    limits.push(
      `${tornPools} of ${pools} pools changed while they were read; --exact pauses the program`,
    );
  }
  return limits;
}

function graphParts(
  document: HeapJson,
  objects: ObjectGraph,
  { to }: HeapRequest,
): Partial<HeapJson> {
  const retained = typeRetained(objects);
  const types = document.types.map((row) => ({
    ...row,
    retainedBytes: retained.get(row.type) ?? 0,
  }));
  types.sort((a, b) => b.retainedBytes - a.retainedBytes || b.bytes - a.bytes);
  const { garbage } = objects;
  return {
    types,
    holders: largestHolders(objects, MOST_HOLDERS).map((holder) => ({
      path: [...holder.path],
      type: holder.type,
      address: hex(holder.address),
      retainedBytes: holder.retainedBytes,
      objects: holder.objects,
      entries: holder.entries,
    })),
    boxed: findBoxedNumbers(objects).map(({ count, path, ...rest }) => ({
      ...rest,
      path: [...path],
      objects: count,
    })),
    garbage,
    ...(to === undefined ? {} : { paths: pathsTo(objects, to) }),
  };
}

function pathsTo(objects: ObjectGraph, to: string): NonNullable<HeapJson["paths"]> {
  const nodes = nodesOf(objects, to);
  const type = itemAt(objects.graph.typeNames, uint32At(objects.graph.type, itemAt(nodes, 0)));
  return findRootPaths(objects, nodes).map(({ path, retainedBytes, objects: count }) => ({
    to: isAddress(to) ? to : type,
    path: [...path],
    retainedBytes,
    objects: count,
  }));
}

function answersTo(
  objects: ObjectGraph,
  { to, draw, wantsValue }: HeapRequest,
): Pick<HeapReading, "dot" | "value"> {
  const nodes = to === undefined ? [] : nodesOf(objects, to);
  return {
    dot: draw === null ? null : draw(objects, nodes),
    value: wantsValue && nodes[0] !== undefined ? readValue(objects, nodes[0]) : null,
  };
}

/** Parses --to: an address or a type's name, also without its module if only one type has that name. Throws TM-E052. */
function nodesOf(objects: ObjectGraph, to: string): NodeId[] {
  if (isAddress(to)) {
    const node = nodeAt(objects, Number(to));
    if (node === 0) {
      throw noSuchObject(`at ${to}`);
    }
    return [node];
  }
  const nodes = nodesOfType(objects, to);
  if (nodes.length > 0) {
    return nodes;
  }
  const named = [...new Set(objects.graph.typeNames)]
    .filter((name) => name.endsWith(`.${to}`))
    .map((name) => ({ name, nodes: nodesOfType(objects, name) }))
    .filter((type) => type.nodes.length > 0);
  const [only, ...others] = named;
  if (only === undefined || others.length > 0) {
    const names = named.map(({ name }) => name);
    throw noSuchObject(`of type ${to}`, names);
  }
  return only.nodes;
}

function isAddress(to: string): boolean {
  return /^0x[0-9a-f]+$/i.test(to);
}

function hex(address: number): string {
  return `0x${address.toString(16)}`;
}

/** Share of the free memory. */
const FREE_SHARE = 0.7;

/**
 * Memory available on this machine and in this command's control group, so that the analysis does not trigger
 * the OOM killer.
 */
function spareMemory(): Bytes {
  const place = findCgroup(process.pid);
  const group = place === null ? null : readLimiting(place);
  const free = freemem();
  if (group === null || group.limitBytes === null) {
    return free * FREE_SHARE;
  }
  const { limitBytes, usageBytes, directory } = group;
  // The kernel drops clean file pages before it kills.
  const used = Math.max(0, usageBytes - (readPageCache(directory) ?? 0));
  return Math.min(free, Math.max(0, limitBytes - used)) * FREE_SHARE;
}
