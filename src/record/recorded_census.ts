/**
 * Objects by type in a recording: counted each time that holders are looked up, in the copy of the heap that
 * this takes, or, where the heap is too large for it, as the program runs.
 */
import type { Census } from "../cpython/heap/census.js";
import type { TypeCounts } from "../cpython/heap/graph_census.js";
import type { CensusEvidence } from "../diagnose/index.js";
import type { Bytes, Pid, TimeMs } from "../model/units.js";
import { checkTable } from "./batch_check.js";
import type { CensusBatch, RecordedCensus } from "./types.js";

/** Types with less are left out: hundreds of them come with every interpreter. */
const SMALLEST_TYPE_BYTES: Bytes = 32 * 1024;

export function countsOf({ typeNames, bytes, bufferBytes, objects }: Census): TypeCounts {
  return {
    types: typeNames,
    objects,
    bytes: bytes.map((own, row) => own + (bufferBytes[row] as Bytes)),
  };
}

/** `told`: types that count whatever their size. */
export function censusBatch(
  pid: Pid,
  { types, objects, bytes }: TypeCounts,
  told: ReadonlySet<string> = new Set(),
): CensusBatch {
  const rows = types.flatMap((type, row) =>
    (bytes[row] as Bytes) >= SMALLEST_TYPE_BYTES || told.has(type) ? [row] : [],
  );
  return {
    pid,
    types: rows.map((row) => types[row] as string),
    objects: Float64Array.from(rows, (row) => objects[row] as number),
    bytes: Float64Array.from(rows, (row) => bytes[row] as Bytes),
  };
}

/** Throws BatchError for what no recorder can have written. */
export function readCensus(value: unknown, timeMs: TimeMs): RecordedCensus {
  checkTable(value, { pid: "number" }, "census");
  checkTable(value, { types: "strings", objects: "f64", bytes: "f64" }, "census");
  return { ...(value as CensusBatch), timeMs };
}

/** Of the process that was counted most often; null where none was. */
export function censusEvidence(censuses: readonly RecordedCensus[]): CensusEvidence | null {
  const byPid = new Map<Pid, RecordedCensus[]>();
  for (const census of censuses) {
    byPid.set(census.pid, [...(byPid.get(census.pid) ?? []), census]);
  }
  const [most] = [...byPid.values()].sort((a, b) => b.length - a.length);
  if (most === undefined) {
    return null;
  }
  const names = new Set(most.flatMap(({ types }) => types));
  const rows = most.map(({ types }) => new Map(types.map((type, row) => [type, row])));
  const course = (type: string, column: "bytes" | "objects") =>
    most.map((census, n) => census[column][rows[n]?.get(type) ?? -1] ?? 0);
  return {
    pid: (most[0] as RecordedCensus).pid,
    timesMs: most.map(({ timeMs }) => timeMs),
    types: [...names].map((type) => ({
      type,
      bytes: course(type, "bytes"),
      objects: course(type, "objects"),
    })),
  };
}
