/**
 * The objects of a program that represent kernel resources: open files, sockets, mappings, connections,
 * threads, child processes. Recognized by their types and subtypes.
 */

import { FIRST_OBJECT, type ObjectGraph } from "../cpython/heap/index.js";
import { itemAt, uint32At } from "../model/base/columns.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import type { Metric } from "../model/profile/series.js";

const MAPPING = "mmap.mmap";
/** The process metrics that grow with them; a file mapping keeps a descriptor. */
const TOLD_BY: Readonly<Record<string, readonly Metric[]>> = {
  "_io.FileIO": ["openFiles"],
  "_socket.socket": ["openSockets"],
  [MAPPING]: ["fileRssBytes", "shmemRssBytes", "openFiles"],
  "select.epoll": ["openFiles"],
  "sqlite3.Connection": ["openFiles"],
  "ssl.SSLSocket": ["openSockets"],
  "threading.Thread": ["threads"],
  "subprocess.Popen": ["endedChildren"],
};
/** Fewer are normal for a program. For mappings, the mapped size matters and not the number. */
const FEWEST = 15;
const FEWEST_MAPPINGS = 4;
export const MOST_OF_TYPE = 400;

/**
 * Objects of the most numerous kind whose metrics grow, spread evenly over their addresses; "" and none if no
 * such kind is numerous.
 */
export function handleObjects(
  { graph, types }: ObjectGraph,
  growing: ReadonlySet<Metric>,
): {
  readonly type: string;
  readonly nodes: readonly NodeId[];
} {
  const kinds = Array.from({ length: types.count }, (_, row) => kindOf(types, row, growing));
  const byKind = new Map<string, NodeId[]>();
  for (let node = FIRST_OBJECT; node < graph.nodes; node++) {
    const kind = kinds[uint32At(graph.type, node)];
    if (kind !== undefined && kind !== null) {
      const same = byKind.get(kind) ?? [];
      byKind.set(kind, same);
      same.push(node);
    }
  }
  const numerous = [...byKind].filter(
    ([kind, same]) => same.length >= (kind === MAPPING ? FEWEST_MAPPINGS : FEWEST),
  );
  const [[type, all] = ["", []]] = numerous.sort((a, b) => b[1].length - a[1].length);
  return { type, nodes: evenly(all, MOST_OF_TYPE) };
}

/** At most this many. */
export function evenly(all: readonly NodeId[], most: number): NodeId[] {
  const step = Math.max(1, all.length / most);
  const count = Math.min(all.length, most);
  return Array.from({ length: count }, (_, n) => itemAt(all, Math.floor(n * step)));
}

function kindOf(
  types: ObjectGraph["types"],
  type: number,
  growing: ReadonlySet<Metric>,
): string | null {
  for (let row = type; row >= 0; row = types.of(row).base) {
    const name = types.name(row);
    if (TOLD_BY[name]?.some((metric) => growing.has(metric))) {
      return name;
    }
  }
  return null;
}
