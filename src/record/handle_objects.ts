/**
 * The objects of a program that stand for what the kernel keeps for it: open files, sockets, mappings,
 * connections, threads. By their types, and by types that come from these.
 */
import { FIRST_OBJECT, type ObjectGraph } from "../cpython/heap/index.js";
import type { NodeId } from "../model/heap_graph.js";

const HANDLE_TYPES: ReadonlySet<string> = new Set([
  "_io.FileIO",
  "_socket.socket",
  "mmap.mmap",
  "select.epoll",
  "sqlite3.Connection",
  "ssl.SSLSocket",
  "threading.Thread",
]);
/** Fewer are a program's ordinary business. */
const FEWEST = 15;
const MOST = 400;

/** Of the kind that there is most of, evenly over their addresses; none where no kind is numerous. */
export function handleObjects({ graph, types }: ObjectGraph): {
  readonly type: string;
  readonly nodes: readonly NodeId[];
} {
  const kinds = Array.from({ length: types.count }, (_, row) => kindOf(types, row));
  const byKind = new Map<string, NodeId[]>();
  for (let node = FIRST_OBJECT; node < graph.nodes; node++) {
    const kind = kinds[graph.type[node] as number];
    if (kind !== undefined && kind !== null) {
      const same = byKind.get(kind) ?? [];
      byKind.set(kind, same);
      same.push(node);
    }
  }
  const [[type, all] = ["", []]] = [...byKind].sort((a, b) => b[1].length - a[1].length);
  const step = Math.max(1, all.length / MOST);
  const count = all.length < FEWEST ? 0 : Math.min(all.length, MOST);
  return {
    type,
    nodes: Array.from({ length: count }, (_, n) => all[Math.floor(n * step)] as NodeId),
  };
}

function kindOf(types: ObjectGraph["types"], type: number): string | null {
  for (let row = type; row >= 0; row = types.bases[row] as number) {
    const name = types.name(row);
    if (HANDLE_TYPES.has(name)) {
      return name;
    }
  }
  return null;
}
