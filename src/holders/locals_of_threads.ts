/**
 * Memory that similar threads keep in local variables of the same function. Each thread has its own, so the paths to
 * the objects have no container in common, although the threads accumulate:
 *
 *   thread watch-1 ──> frame Watcher.run ──> local lines ──> ...
 *   thread watch-2 ──> frame Watcher.run ──> local lines ──> ...      each of 2 threads → frame Watcher.run → local lines
 */

import { ROOT_STACKS } from "../cpython/heap/graph/graph.js";
import type { Holder, ObjectGraph } from "../cpython/heap/index.js";
import { StepNames } from "../cpython/heap/names/step_names.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { pathTo } from "../model/heap/heap_paths.js";

/** Share of the objects that must be in the same local of such threads. */
const MOST = 0.6;
const FEWEST_THREADS = 3;
const FRAME = /^frame /;
const LOCAL = /^local /;

/** The local as the holder of most of the objects; null if threads do not hold them in this way. */
export function localsOfThreads(objects: ObjectGraph, nodes: readonly NodeId[]): Holder | null {
  const names = new StepNames(objects);
  const byPlace = new Map<string, { threads: Set<string>; locals: Set<NodeId>; count: number }>();
  for (const node of nodes) {
    const [root, ...way] = pathTo(objects.paths, node);
    const words = root === ROOT_STACKS ? names.words([root, ...way]) : [];
    const [thread = ""] = words;
    // Up to 3.10 frames are objects, and the path leads through those that the function has called.
    const at = words.findIndex((word, n) => FRAME.test(word) && LOCAL.test(words[n + 1] ?? ""));
    const kept = way.find((one) => names.typeName(one) !== "frame");
    if (!thread.startsWith("thread ") || at < 0 || kept === undefined) {
      continue;
    }
    const key = words.slice(at, at + 2).join("\n");
    const place = byPlace.get(key) ?? { threads: new Set(), locals: new Set(), count: 0 };
    byPlace.set(key, place);
    place.threads.add(thread);
    place.locals.add(kept);
    place.count += 1;
  }
  const [most] = [...byPlace].sort(([, a], [, b]) => b.count - a.count);
  if (most === undefined || most[1].count < MOST * nodes.length) {
    return null;
  }
  const [key, { threads, locals }] = most;
  if (threads.size < FEWEST_THREADS) {
    return null;
  }
  const [frame = "", local = ""] = key.split("\n");
  // The looked-up objects are a sample of all; every thread that runs the function has such a local.
  const running = Math.max(threads.size, objects.frames.countOf(frame));
  const mean = (figure: (node: NodeId) => number) =>
    [...locals].reduce((sum, node) => sum + figure(node), 0) / locals.size;
  return {
    node: 0,
    address: 0,
    type: names.typeName([...locals][0] ?? 0),
    path: [`each of ${running} threads`, frame, local],
    retainedBytes: Math.round(running * mean((node) => objects.tree.retainedBytes(node))),
    entries: 0,
    objects: Math.round(running * mean((node) => objects.tree.retainedObjects(node))),
  };
}
