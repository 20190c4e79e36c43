/** Objects counted by type: those of a graph, without another pass over the memory, or those of a census. */

import { addAt, float64At, uint32At } from "../../../model/base/columns.js";
import type { Bytes, Objects } from "../../../model/base/units.js";
import type { TypeCounts } from "../../../model/heap/heap_graph.js";
import { FIRST_OBJECT, type ObjectGraph } from "../graph/graph.js";
import type { Census } from "./census.js";

export function countGraph({ graph, end }: ObjectGraph): TypeCounts {
  const [objectsOf, bytesOf] = [
    new Float64Array(graph.typeNames.length),
    new Float64Array(graph.typeNames.length),
  ];
  // A storage is a separate node here; its bytes count for the first tensor that has it.
  const isCounted = new Uint8Array(graph.nodes - end);
  for (let node = FIRST_OBJECT; node < end; node++) {
    const row = uint32At(graph.type, node);
    addAt(objectsOf, row, 1);
    addAt(bytesOf, row, float64At(graph.shallow, node));
    if (isCounted.length === 0) {
      continue;
    }
    const stop = uint32At(graph.edgeStart, node + 1);
    for (let edge = uint32At(graph.edgeStart, node); edge < stop; edge++) {
      const to = uint32At(graph.edgeTo, edge);
      if (to >= end && isCounted[to - end] === 0) {
        isCounted[to - end] = 1;
        addAt(bytesOf, row, float64At(graph.shallow, to));
      }
    }
  }
  const counts = new Map<string, { objects: Objects; bytes: Bytes }>();
  for (const [row, name] of graph.typeNames.entries()) {
    const count = counts.get(name) ?? { objects: 0, bytes: 0 };
    counts.set(name, count);
    count.objects += float64At(objectsOf, row);
    count.bytes += float64At(bytesOf, row);
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
    bytes: bytes.map((own, row) => own + float64At(bufferBytes, row)),
  };
}
