/** The frame of processes that ran out of memory: `{ends}`, a list of {@link MemoryEnd}. */
import { MEMORY_END_CAUSES, type MemoryEnd } from "../model/profile/memory_end.js";
import { checkTable, demand, record } from "./batch_check.js";

/** Throws BatchError for a batch that no recorder can have written. */
export function readMemoryEnds(value: unknown): MemoryEnd[] {
  const { ends } = record(value, "memoryEnds");
  demand(Array.isArray(ends), "memoryEnds.ends is not a list");
  for (const end of ends) {
    checkTable(
      end,
      {
        pid: "number",
        timeMs: "number",
        cause: "string",
        limitBytes: "number",
        usedBytes: "number",
        rssBytes: "number",
        limit: "string",
        evidence: "strings",
      },
      "memoryEnds",
    );
    const { cause, failedBytes = 0 } = end as MemoryEnd;
    demand(typeof failedBytes === "number", "memoryEnds.failedBytes is not a number");
    demand(MEMORY_END_CAUSES.includes(cause), `a cause of an end is unknown: ${cause}`);
  }
  return ends as MemoryEnd[];
}
