/** The ways from roots to the objects of a type, told together where many share one. */
import type { NodeId } from "../../model/heap_graph.js";
import { pathTo } from "../../model/heap_paths.js";
import type { Bytes, Objects } from "../../model/units.js";
import { FIRST_OBJECT, type ObjectGraph } from "./graph.js";
import { StepNames } from "./step_names.js";

export interface RootPath {
  readonly path: readonly string[];
  /** Nodes of the way as far as all objects of the group share it, roots first. */
  readonly nodes: readonly NodeId[];
  readonly objects: Objects;
  readonly retainedBytes: Bytes;
}

/** So many objects under one container are told together, as "list[...]". */
const LEAST_TOGETHER = 8;
const MOST_LEVELS = 6;
const MOST_PATHS = 200;

/** Objects of a type by its name, or the one object at an address. */
export function nodesOfType({ graph }: ObjectGraph, type: string): NodeId[] {
  const rows = new Set<number>();
  for (const [row, name] of graph.typeNames.entries()) {
    if (name === type) {
      rows.add(row);
    }
  }
  const nodes: NodeId[] = [];
  for (let node = FIRST_OBJECT; node < graph.nodes; node++) {
    if (rows.has(graph.type[node])) {
      nodes.push(node);
    }
  }
  return nodes;
}

/** Objects whose ways end alike: at one node, and with these words behind it. */
interface Group {
  readonly end: NodeId;
  readonly words: readonly string[];
  readonly objects: Objects;
  readonly retainedBytes: Bytes;
}

/** Ways to the nodes, the largest first. */
export function findRootPaths(objects: ObjectGraph, nodes: readonly NodeId[]): RootPath[] {
  const { paths, tree } = objects;
  const names = new StepNames(objects);
  let groups: Group[] = nodes.map((node) => ({
    end: node,
    words: [],
    objects: 1,
    retainedBytes: tree.retained[node],
  }));
  for (let level = 0; level < MOST_LEVELS; level++) {
    const joined = joinSiblings(objects, names, groups);
    if (joined.length === groups.length) {
      break;
    }
    groups = joined;
  }
  const largest = groups
    .sort((a, b) => b.retainedBytes - a.retainedBytes || b.objects - a.objects)
    .slice(0, MOST_PATHS);
  return mergeSameWords(
    largest.map(({ end, words, objects: count, retainedBytes }) => {
      const way = pathTo(paths, end);
      return { path: [...names.words(way), ...words], nodes: way, objects: count, retainedBytes };
    }),
  );
}

/** Groups that hang under one container in the same way become one group, where they are many. */
function joinSiblings({ paths }: ObjectGraph, names: StepNames, groups: readonly Group[]): Group[] {
  const siblings = new Map<string, Group[]>();
  for (const group of groups) {
    const container = paths.before[group.end];
    const key = `${container} ${group.words.join(" ")}`;
    const others = siblings.get(key);
    if (others === undefined) {
      siblings.set(key, [group]);
    } else {
      others.push(group);
    }
  }
  return [...siblings.values()].flatMap((together) => {
    const container = paths.before[(together[0] as Group).end];
    if (together.length < LEAST_TOGETHER || container < FIRST_OBJECT) {
      return together;
    }
    return [
      {
        end: container,
        words: [names.anyOf(container), ...(together[0] as Group).words],
        objects: together.reduce((sum, group) => sum + group.objects, 0),
        retainedBytes: together.reduce((sum, group) => sum + group.retainedBytes, 0),
      },
    ];
  });
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
