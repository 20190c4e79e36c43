/**
 * What IPython keeps of the cells of a session. Each result is in three dicts under names of its own, so the paths to
 * the results have no container in common:
 *
 *   InteractiveShell ── user_ns ──> {"Out": results, "_oh": results, "_5": result, ...}
 *                                    results: {5: result, ...}
 *
 * The attribute is _user_ns from IPython 9 on. Source: IPython/core/displayhook.py, update_user_ns.
 */

import { type Holder, holderOf, nodesOfType, type ObjectGraph } from "../cpython/heap/index.js";
import { addressAt } from "../cpython/heap/names/attributes.js";
import { readDictEntries, readStr } from "../cpython/heap/objects/small_objects.js";
import { SHAPE_MODULE, SHAPE_TYPE } from "../cpython/heap/objects/type_table.js";
import { float64At, uint32At } from "../model/base/columns.js";
import type { Address, Bytes } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";

const SHELL = /(?:^|\.)\w*InteractiveShell(?:Embed)?$/;
const RESULTS = "_oh";
const LONGEST_NAME = 8;
const MOST_NAMES = 100_000;
const MOST_VISITED = 1_000_000;
/** Share of the objects that the results must lead to. */
const LEAST_SHARE = 0.5;
/** The type under which the advice finds such a holder. */
const IPYTHON_RESULTS = "dict of IPython results";

/** Where most of the objects accumulate. A result of a cell also has a name in the namespace of the session. */
export function namedHolder(objects: ObjectGraph, nodes: readonly NodeId[]): Holder | null {
  const holder = holderOf(objects, nodes);
  const isNamespace = holder?.path.at(-1) === "__dict__";
  return (holder === null || isNamespace ? cellResults(objects, nodes) : null) ?? holder;
}

/** The results as the holder of most of the objects; null if they are not, or IPython does not run. */
function cellResults(objects: ObjectGraph, nodes: readonly NodeId[]): Holder | null {
  if (nodes.length === 0) {
    return null;
  }
  for (const address of resultDicts(objects)) {
    const node = objects.index.at(address);
    const { reached, retainedBytes } = reachedFrom(objects, node);
    const among = nodes.filter((one) => reached.has(one)).length;
    if (node !== 0 && among >= LEAST_SHARE * nodes.length) {
      return {
        node,
        address,
        type: IPYTHON_RESULTS,
        path: ["IPython", "Out"],
        retainedBytes,
        entries: readDictEntries(objects.copy, objects.layout, address)?.length ?? 0,
        objects: reached.size,
      };
    }
  }
  return null;
}

function resultDicts(objects: ObjectGraph): Address[] {
  const { copy, layout, graph } = objects;
  return [...new Set(graph.typeNames.filter((name) => SHELL.test(name)))]
    .flatMap((type) => nodesOfType(objects, type))
    .flatMap((shell) => {
      const names = addressAt(objects, shell, "_user_ns") ?? addressAt(objects, shell, "user_ns");
      const entries = names === null ? null : readDictEntries(copy, layout, names, MOST_NAMES);
      return (entries ?? []).flatMap(({ key, value }) =>
        readStr(copy, layout, key, LONGEST_NAME) === RESULTS ? [value] : [],
      );
    });
}

/** A module or class that is a result is not kept by it. */
function reachedFrom({ graph, types, end }: ObjectGraph, results: NodeId) {
  const reached = new Set<NodeId>();
  const leaves: NodeId[] = [];
  const waiting = results === 0 ? [] : [results];
  let retainedBytes: Bytes = 0;
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    retainedBytes += float64At(graph.shallow, node);
    for (
      let edge = uint32At(graph.edgeStart, node);
      edge < uint32At(graph.edgeStart, node + 1);
      edge++
    ) {
      const to = uint32At(graph.edgeTo, edge);
      const { shape } = types.of(uint32At(graph.type, to));
      const isNamespace = to < end && (shape === SHAPE_MODULE || shape === SHAPE_TYPE);
      if (to !== results && !isNamespace && !reached.has(to) && reached.size < MOST_VISITED) {
        reached.add(to);
        waiting.push(to);
      }
    }
  }
  for (const [node, referrer] of graph.onlyReferrer?.entries() ?? []) {
    if (referrer !== 0 && (referrer === results || reached.has(referrer)) && !reached.has(node)) {
      leaves.push(node);
      retainedBytes += float64At(graph.shallow, node);
    }
  }
  for (const leaf of leaves) {
    reached.add(leaf);
  }
  return { reached, retainedBytes };
}
