/**
 * The paths from roots to the objects of a type, grouped if many share one. Works from the objects upwards,
 * level by level, until nothing changes:
 *
 *   filters: list ──┬─> tuple ──> Pattern          a group is a node, and the words from there to its objects
 *                   ├─> tuple ──> Pattern          many alike under one node     one group, "list[...]"
 *                   └─> tuple ──> Pattern          else: one step up             "tuple[...]"
 *   shown as: filters -> list[...] -> tuple[...]
 *
 * Paths without a common part are shown individually.
 */

import { float64At, uint32At } from "../../../model/base/columns.js";
import { present } from "../../../model/base/present.js";
import type { Bytes, Objects } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { pathTo } from "../../../model/heap/heap_paths.js";
import { FIRST_OBJECT, type ObjectGraph } from "../graph/graph.js";
import { StepNames } from "./step_names.js";

interface RootPath {
  readonly path: readonly string[];
  /** Nodes of the path as far as all objects of the group share it, roots first. */
  readonly nodes: readonly NodeId[];
  readonly objects: Objects;
  readonly retainedBytes: Bytes;
}

/** This many objects in one container are shown as one item, "list[...]". */
const LEAST_TOGETHER = 8;
const MOST_LEVELS = 16;
const MOST_PATHS = 200;
/** More nodes than any graph has. */
const MOST_TAILS = 2 ** 26;

/** Objects of a type by its name, or the one object at an address. */
export function nodesOfType({ graph }: ObjectGraph, type: string): NodeId[] {
  const isWanted = Uint8Array.from(graph.typeNames, (name) => (name === type ? 1 : 0));
  const nodes: NodeId[] = [];
  const end = isWanted.includes(1) ? graph.nodes : 0;
  for (let node = FIRST_OBJECT; node < end; node++) {
    if (isWanted[uint32At(graph.type, node)] === 1) {
      nodes.push(node);
    }
  }
  return nodes;
}

/** The steps from a node to its objects; equal sequences of steps are stored once. */
interface Tail {
  readonly id: number;
  readonly words: readonly string[];
}

/** Objects whose paths end in the same way: at one node, followed by these steps. */
interface Group {
  readonly end: NodeId;
  readonly tail: Tail;
  readonly objects: Objects;
  readonly retainedBytes: Bytes;
  /** The level up to which similar nodes are searched; null: no further. */
  readonly at: { readonly node: NodeId; readonly tail: Tail } | null;
}

/** Paths to the nodes, largest first; the last one represents those beyond the limit. */
export function findRootPaths(objects: ObjectGraph, nodes: readonly NodeId[]): RootPath[] {
  const grouping = new PathGrouping(objects);
  const groups = grouping
    .run(nodes)
    .sort((a, b) => b.retainedBytes - a.retainedBytes || b.objects - a.objects);
  const shown = groups.slice(0, MOST_PATHS).map(({ end, tail, objects: count, retainedBytes }) => {
    const way = pathTo(objects.paths, end);
    const path = [...grouping.names.words(way), ...tail.words];
    return { path, nodes: way, objects: count, retainedBytes };
  });
  const others = groups.slice(MOST_PATHS);
  return [
    ...mergeSameWords(shown),
    ...(others.length === 0 ? [] : [{ path: ["other paths"], nodes: [], ...sumsOf(others) }]),
  ];
}

class PathGrouping {
  readonly names: StepNames;
  readonly #tails = new Map<string, Tail>();

  constructor(readonly objects: ObjectGraph) {
    this.names = new StepNames(objects);
  }

  run(nodes: readonly NodeId[]): Group[] {
    const { retained } = this.objects.tree;
    const tail = this.#tail([]);
    let groups: Group[] = nodes.map((node) => ({
      end: node,
      tail,
      objects: 1,
      retainedBytes: float64At(retained, node),
      at: { node, tail },
    }));
    for (let level = 0; level < MOST_LEVELS && groups.some(({ at }) => at !== null); level++) {
      groups = this.#level(groups);
    }
    return groups;
  }

  #level(groups: readonly Group[]): Group[] {
    const siblings = new Map<number, Group[]>();
    const done: Group[] = [];
    for (const group of groups) {
      if (group.at === null) {
        done.push(group);
        continue;
      }
      const key =
        uint32At(this.objects.paths.before, group.at.node) * MOST_TAILS + group.at.tail.id;
      const others = siblings.get(key);
      if (others === undefined) {
        siblings.set(key, [group]);
      } else {
        others.push(group);
      }
    }
    for (const together of siblings.values()) {
      const container = uint32At(this.objects.paths.before, together[0]?.at?.node ?? 0);
      if (together.length >= LEAST_TOGETHER && container >= FIRST_OBJECT) {
        done.push(this.#joined(container, together));
      } else {
        done.push(...together.map((group) => this.#higher(group)));
      }
    }
    return done;
  }

  #joined(container: NodeId, together: readonly Group[]): Group {
    const behind = together[0]?.at?.tail.words ?? [];
    const tail = this.#tail([this.names.anyOf(container), ...behind]);
    return { end: container, tail, ...sumsOf(together), at: { node: container, tail } };
  }

  /** One step up. An attribute, or a variable of a function, is one step through two nodes. */
  #higher(group: Group): Group {
    const { before } = this.objects.paths;
    const { node, tail } = present(group.at);
    const container = uint32At(before, node);
    const above = container < FIRST_OBJECT ? 0 : uint32At(before, container);
    if (above < FIRST_OBJECT) {
      return { ...group, at: null };
    }
    const isTwo =
      this.names.holdsAttributes(above, container) || this.names.typeName(above) === "function";
    const to = isTwo ? above : container;
    const words = this.names.words(isTwo ? [above, container, node] : [container, node]);
    return uint32At(before, to) < FIRST_OBJECT
      ? { ...group, at: null }
      : { ...group, at: { node: to, tail: this.#tail([...words, ...tail.words]) } };
  }

  #tail(words: readonly string[]): Tail {
    const key = words.join("\0");
    const tail = this.#tails.get(key) ?? { id: this.#tails.size, words };
    this.#tails.set(key, tail);
    return tail;
  }
}

function sumsOf(groups: readonly Group[]): Pick<Group, "objects" | "retainedBytes"> {
  return {
    objects: groups.reduce((sum, group) => sum + group.objects, 0),
    retainedBytes: groups.reduce((sum, group) => sum + group.retainedBytes, 0),
  };
}

function mergeSameWords(paths: readonly RootPath[]): RootPath[] {
  const merged = new Map<string, RootPath>();
  for (const path of paths) {
    const key = path.path.join("\0");
    const same = merged.get(key);
    merged.set(
      key,
      same === undefined
        ? path
        : {
            ...same,
            objects: same.objects + path.objects,
            retainedBytes: same.retainedBytes + path.retainedBytes,
          },
    );
  }
  return [...merged.values()].sort((a, b) => b.retainedBytes - a.retainedBytes);
}
