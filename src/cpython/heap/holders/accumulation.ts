/**
 * Finds the container in which the objects of one site accumulate: follows the paths from the roots as long as
 * most of them share a node; the container at which they split is the growing one.
 *
 *   module app ──> __dict__ ──> Store ──> .by_day: dict ──┬─> "mon": list ──> sample
 *                  (names)     (fixed)    they split here ──┼─> "tue": list ──> sample
 *                                                          └─> ...
 *
 * A module, a class and an object with few fields have fixed names and do not grow: if paths split there, two
 * leaks share it, and the larger one counts. If nearly every object has its own module, sys.modules grows; if many
 * names of a namespace lead to them, that grows. A chain (each link holds the next: tracebacks, linked
 * nodes) is represented by its first link.
 */

import { uint32At } from "../../../model/base/columns.js";
import type { Bytes } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { PathTree } from "../../../model/heap/heap_paths.js";
import { FIRST_OBJECT, type ObjectGraph, ROOT_MODULES } from "../graph/graph.js";
import { FEWEST_LINKS } from "../names/chains.js";
import type { StepNames } from "../names/step_names.js";
import { CONTAINER_SHAPES, SHAPE_DICT, SHAPE_MODULE, SHAPE_TYPE } from "../objects/type_table.js";

/**
 * Minimum share of the paths through a node that must continue to the same next node, for that node to be
 * followed.
 */
const MOST = 0.6;
/** Minimum share of all looked-up objects that must be reachable through the holder. */
const LEAST_SHARE = 0.25;
/** An object at which paths split into more is not a fixed structure, but a node of a tree or a C table. */
const MOST_FIELDS = 4;
/** This many links form a chain even if no path ends along it. */
const SURE_LINKS = 24;
const LOST_ON_CHAIN = 0.3;
const DEEPEST = 4096;
/** Fewer blocks of one object may be parts of it, such as an instance and its attributes. */
const FEWEST_BLOCKS = 3;
/** Fewer names at which paths split may be separate leaks. */
const FEWEST_NAMES = 12;
const LARGE: Bytes = 2 ** 20;

interface Step {
  readonly node: NodeId;
  /** Number of paths through it. */
  readonly ways: number;
}

/** The object in which most of `nodes` accumulate; 0 if no object holds enough of them. */
export function accumulationPoint(
  objects: ObjectGraph,
  names: StepNames,
  nodes: readonly NodeId[],
): NodeId {
  let ways = nodes.map((node) => pathNodes(objects.paths, node)).filter((way) => way.length > 0);
  const least = Math.max(1, LEAST_SHARE * nodes.length);
  const steps: Step[] = [];
  for (let depth = 0; ; depth++) {
    const onward = byStep(ways, depth);
    const [next, through] = onward[0] ?? [0, []];
    if (through.length < least) {
      break;
    }
    if (through.length < MOST * ways.length && !isFixed(objects, names, steps, onward.length)) {
      break;
    }
    const last = steps.at(-1)?.node ?? 0;
    // If all paths lead to one object, its holder is wanted, unless it is a container, keeps growing in its own
    // buffer, or has several blocks: what a C library keeps for it (an in-memory database). If paths were truncated, they only seem to lead to one object. One of several objects with names of
    // their own (df1, df2, df3) does not hold the others, unless it is a container.
    if (depth + 1 < DEEPEST && through.every((way) => way.length === depth + 1)) {
      const before = steps.at(-2)?.node ?? 0;
      const isBacked =
        through.length >= FEWEST_BLOCKS && next >= FIRST_OBJECT && next < objects.end;
      const itself =
        isContainer(objects, names, next, last) ||
        isBacked ||
        (isLarge(objects, next) && !isContainer(objects, names, last, before));
      const holder = itself
        ? next
        : (firstLink(objects, names, steps, Number.POSITIVE_INFINITY) ??
          nearestContainer(objects, names, steps));
      const isOne = nodes.length > 1 && through.length === 1;
      return isOne && !CONTAINER_SHAPES.has(shapeOf(objects, holder)) ? 0 : holder;
    }
    steps.push({ node: next, ways: through.length });
    ways = through;
  }
  const [end, before] = [steps.at(-1)?.node ?? 0, steps.at(-2)?.node ?? 0];
  if (end === ROOT_MODULES && areMany(byStep(ways, steps.length), nodes)) {
    return objects.modules;
  }
  // Before 3.11, paths along a chain may end in the attributes of one of its links.
  const link = firstLink(objects, names, steps, SURE_LINKS);
  const isNone =
    end < FIRST_OBJECT ||
    // A namespace grows if many names lead to them, and none to a quarter: globals()[f"table_{n}"].
    (isNamespace(objects, names, end, before) && byStep(ways, steps.length).length < FEWEST_NAMES);
  return link ?? (isNone ? 0 : end);
}

/** Modules created at run time. */
function areMany(modules: readonly unknown[], nodes: readonly NodeId[]): boolean {
  return modules.length >= Math.max(FEWEST_LINKS, nodes.length / 2);
}

/** Paths grouped by the next node, most first. */
function byStep(ways: readonly Uint32Array[], depth: number): [NodeId, Uint32Array[]][] {
  const next = new Map<NodeId, Uint32Array[]>();
  for (const way of ways) {
    const node = way[depth];
    if (node !== undefined) {
      const others = next.get(node);
      if (others === undefined) {
        next.set(node, [way]);
      } else {
        others.push(way);
      }
    }
  }
  return [...next].sort((a, b) => b[1].length - a[1].length);
}

/** The last node that was followed holds a fixed set of named objects. */
function isFixed(
  objects: ObjectGraph,
  names: StepNames,
  steps: readonly Step[],
  parts: number,
): boolean {
  const last = steps.at(-1)?.node ?? 0;
  const holder = steps.at(-2)?.node ?? 0;
  if (last < FIRST_OBJECT || isNamespace(objects, names, last, holder)) {
    return true;
  }
  return !isContainer(objects, names, last, holder) && parts <= MOST_FIELDS;
}

/** Objects that hold others by name: a module, a class, their dicts. */
export function isNamespace(
  objects: ObjectGraph,
  names: StepNames,
  node: NodeId,
  holder: NodeId,
): boolean {
  const shape = shapeOf(objects, node);
  return (
    shape === SHAPE_MODULE ||
    shape === SHAPE_TYPE ||
    node === objects.modules ||
    (holder !== 0 && shape === SHAPE_DICT && names.holdsAttributes(holder, node)) ||
    (holder !== 0 && names.typeName(holder) === "function" && shape === SHAPE_DICT)
  );
}

function isContainer(
  objects: ObjectGraph,
  names: StepNames,
  node: NodeId,
  holder: NodeId,
): boolean {
  return (
    node >= FIRST_OBJECT &&
    CONTAINER_SHAPES.has(shapeOf(objects, node)) &&
    !isNamespace(objects, names, node, holder)
  );
}

/**
 * Whether the object is large together with everything that only it keeps alive, such as the buffer of a
 * bytearray. A storage does not count, because its tensor is more informative.
 */
function isLarge({ tree, end }: ObjectGraph, node: NodeId): boolean {
  return node >= FIRST_OBJECT && node < end && tree.retainedBytes(node) >= LARGE;
}

/** On a path to one object, the innermost container, otherwise the object before it. */
function nearestContainer(objects: ObjectGraph, names: StepNames, steps: readonly Step[]): NodeId {
  const container = steps.findLast(({ node }, n) =>
    isContainer(objects, names, node, steps[n - 1]?.node ?? 0),
  );
  const { node } = container ?? steps.at(-1) ?? { node: 0 };
  return node >= FIRST_OBJECT ? node : 0;
}

/**
 * The first link of a chain along which a path runs. `sure`: this many links form a chain even if no path is
 * seen to end along it.
 */
function firstLink(
  objects: ObjectGraph,
  names: StepNames,
  steps: readonly Step[],
  sure: number,
): NodeId | null {
  const links = new Map<number, Step[]>();
  for (const [n, step] of steps.entries()) {
    const before = steps[n - 1]?.node ?? 0;
    if (step.node >= FIRST_OBJECT && !isNamespace(objects, names, step.node, before)) {
      const type = uint32At(objects.graph.type, step.node);
      const same = links.get(type) ?? [];
      links.set(type, same);
      same.push(step);
    }
  }
  const [most] = [...links.values()].sort((a, b) => b.length - a.length);
  const [first, last] = [most?.[0], most?.at(-1)];
  if (most === undefined || first === undefined || last === undefined) {
    return null;
  }
  const lost = last.ways <= (1 - LOST_ON_CHAIN) * first.ways;
  return most.length >= (lost ? FEWEST_LINKS : sure) ? first.node : null;
}

function shapeOf({ graph, types }: ObjectGraph, node: NodeId): number {
  return node < FIRST_OBJECT ? -1 : types.of(uint32At(graph.type, node)).shape;
}

/** Nodes from a root to `node`, both included, at most the first {@link DEEPEST}, because chains may be long. */
function pathNodes({ before, reached }: PathTree, node: NodeId): Uint32Array {
  let length = 0;
  for (let at = reached[node] === 0 ? 0 : node; at !== 0; at = uint32At(before, at)) {
    length += 1;
  }
  const way = new Uint32Array(Math.min(length, DEEPEST));
  for (let at = node, n = length - 1; n >= 0; at = uint32At(before, at), n--) {
    if (n < DEEPEST) {
      way[n] = at;
    }
  }
  return way;
}
