/**
 * Objects counted by type, as a recording stores them. The recorder counts whenever it looks up holders: in the copy
 * of the heap made for that lookup or, if the heap is too large to copy, in the running program.
 */

import { float64At, itemAt } from "../model/base/columns.js";
import type { Bytes, Pid, TimeMs } from "../model/base/units.js";
import type { TypeCounts } from "../model/heap/heap_graph.js";
import { checkTable } from "./batch_check.js";
import type { CensusBatch, RecordedCensus } from "./types.js";

/** Types with fewer bytes are left out: every interpreter has hundreds of them. */
const SMALLEST_TYPE_BYTES: Bytes = 32 * 1024;

/** `always`: types that are kept whatever their size. */
export function censusBatch(
  pid: Pid,
  { types, objects, bytes }: TypeCounts,
  always: ReadonlySet<string> = new Set(),
): CensusBatch {
  const rows = types.flatMap((type, row) =>
    float64At(bytes, row) >= SMALLEST_TYPE_BYTES || always.has(type) ? [row] : [],
  );
  return {
    pid,
    types: rows.map((row) => itemAt(types, row)),
    objects: Float64Array.from(rows, (row) => float64At(objects, row)),
    bytes: Float64Array.from(rows, (row) => float64At(bytes, row)),
  };
}

/** Throws BatchError for a batch that no recorder can have written. */
export function readCensus(value: unknown, timeMs: TimeMs): RecordedCensus {
  checkTable(value, { pid: "number" }, "census");
  checkTable(value, { types: "strings", objects: "f64", bytes: "f64" }, "census");
  return { ...(value as CensusBatch), timeMs };
}
