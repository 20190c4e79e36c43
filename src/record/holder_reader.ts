import type { Pid } from "../model/units.js";
import { checkTable, demand, record } from "./batch_check.js";
import type { HolderBatch } from "./types.js";

const ROW = {
  site: "string",
  looked: "number",
  held: "number",
  garbage: "number",
  graph: "number",
  path: "strings",
  type: "string",
  retainedBytes: "number",
  entries: "number",
  bound: "number",
} as const;

/** Keeps of each process the newest lookup. */
export class HolderReader {
  private readonly byPid = new Map<Pid, HolderBatch>();

  /** Throws BatchError for what no recorder can have written. */
  add(value: unknown): void {
    checkTable(value, { pid: "number" }, "holders");
    const { rows, collector } = record(value, "holders");
    demand(Array.isArray(rows), "holders.rows is no list");
    for (const row of rows as unknown[]) {
      checkTable(row, ROW, "a holder");
    }
    if (collector !== null) {
      checkTable(collector, { youngCount: "number", youngThreshold: "number" }, "the collector");
    }
    const batch = value as HolderBatch;
    this.byPid.set(batch.pid, batch);
  }

  newest(): HolderBatch[] {
    return [...this.byPid.values()];
  }
}
