/** Objects counted by type: those of a graph, without another pass over the memory, and those of a census. */

import type { Bytes, Objects } from "../../../model/base/units.js";
import type { TypeCounts } from "../../../model/heap/heap_graph.js";
import { FIRST_OBJECT, type ObjectGraph } from "../graph/graph.js";
import type { Census } from "./census.js";

export function countGraph({ graph, end }: ObjectGraph): TypeCounts {
  const counts = new Map<string, { objects: Objects; bytes: Bytes }>();
  const byRow = graph.typeNames.map((name) => {
    const count = counts.get(name) ?? { objects: 0, bytes: 0 };
    counts.set(name, count);
    return count;
  });
  // A storage is a node of its own here; its bytes are those of the first tensor that has it.
  const told = new Uint8Array(graph.nodes - end);
  for (let node = FIRST_OBJECT; node < end; node++) {
    const count = byRow[graph.type[node] as number];
    if (count === undefined) {
      continue;
    }
    count.objects += 1;
    count.bytes += graph.shallow[node] as Bytes;
    if (told.length === 0) {
      continue;
    }
    const stop = graph.edgeStart[node + 1] as number;
    for (let edge = graph.edgeStart[node] as number; edge < stop; edge++) {
      const to = graph.edgeTo[edge] as number;
      if (to >= end && told[to - end] === 0) {
        told[to - end] = 1;
        count.bytes += graph.shallow[to] as Bytes;
      }
    }
  }
  const rows = [...counts].filter(([, { objects }]) => objects > 0);
  return {
    types: rows.map(([name]) => name),
    objects: Float64Array.from(rows, ([, { objects }]) => objects),
    bytes: Float64Array.from(rows, ([, { bytes }]) => bytes),
  };
}

export function countsOf({ typeNames, bytes, bufferBytes, objects }: Census): TypeCounts {
  return {
    types: typeNames,
    objects,
    bytes: bytes.map((own, row) => own + (bufferBytes[row] as Bytes)),
  };
}
