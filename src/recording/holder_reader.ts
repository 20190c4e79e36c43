import type { Pid, TimeMs } from "../model/base/units.js";
import { numberedCell } from "../model/profile/frame_text.js";
import { checkTable, demand, record } from "./batch_check.js";
import type { FoundHolder, HolderBatch, HolderLookup, HolderRow } from "./types.js";

const ROW = {
  site: "string",
  madeAt: "number?",
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

const CELL = { file: "string", number: "number" } as const;
const PUTTER = { function: "string", file: "string", line: "number", callers: "strings" } as const;

/**
 * Keeps the newest lookup of each process; for sites that it did not include, the previous one; and an earlier
 * holder if it found none, because one torn link in the copy can hide a holder.
 */
export class HolderReader {
  readonly #byPid = new Map<Pid, HolderLookup>();
  readonly #cells = new Map<string, string>();

  /** Throws BatchError for what no recorder can have written. */
  add(value: unknown, timeMs: TimeMs): void {
    checkTable(value, { pid: "number" }, "holders");
    const { rows, collector, cells = [] } = record(value, "holders");
    demand(Array.isArray(rows), "holders.rows is not a list");
    for (const row of rows) {
      checkTable(row, ROW, "a holder");
      const { putters, unreferenced, entrySpread } = record(row, "a holder");
      for (const figure of [unreferenced, entrySpread]) {
        demand(
          figure === undefined || Number.isFinite(figure),
          "a holder's figure is not a number",
        );
      }
      demand(Array.isArray(putters), "a holder's putters are not a list");
      for (const putter of putters) {
        checkTable(putter, PUTTER, "functions that add to a holder");
      }
    }
    if (collector !== null) {
      checkTable(collector, { youngCount: "number", youngThreshold: "number" }, "the collector");
    }
    demand(Array.isArray(cells), "the cells are not a list");
    for (const cell of cells) {
      checkTable(cell, CELL, "a cell");
    }
    const batch = value as HolderBatch;
    for (const { file, number } of batch.cells ?? []) {
      this.#cells.set(file, numberedCell(file, number));
    }
    const older = new Map(this.#byPid.get(batch.pid)?.rows.map((row) => [row.site, row]));
    const merged = batch.rows.map((one) => {
      const row = { ...one, foundMs: timeMs };
      const before = older.get(row.site);
      older.delete(row.site);
      const found = before ? mergedWith(before, row) : row;
      return { ...found, madeAt: row.madeAt ?? before?.madeAt ?? null };
    });
    this.#byPid.set(batch.pid, { ...batch, rows: [...merged, ...older.values()] });
  }

  newest(): HolderLookup[] {
    return [...this.#byPid.values()];
  }

  /** Strings with the number of a notebook cell in place of the hash that the kernel named it by. */
  withCells(strings: readonly string[]): readonly string[] {
    const cells = this.#cells;
    return cells.size === 0 ? strings : strings.map((text) => cells.get(text) ?? text);
  }
}

/**
 * A lookup that found less than an earlier one does not refute it: the program may have replaced the holder while it was
 * copied. Memory that is unreferenced is so in every lookup.
 */
function mergedWith(before: FoundHolder, row: FoundHolder): FoundHolder {
  if (isTorn(row)) {
    return { ...before, ...countsOf(row) };
  }
  if (isHeldByNobody(row) && before.path.length > 0 && before.held >= LEAST_HELD * before.looked) {
    return before;
  }
  const { looked, unreferenced } = row;
  return unreferenced === undefined || before.unreferenced === undefined || before.looked === 0
    ? row
    : {
        ...row,
        unreferenced: Math.min(unreferenced, (before.unreferenced / before.looked) * looked),
      };
}

/** Objects or a graph of tensors hold it, but no common holder was found. */
export function isTorn({ path, held, graph, looked }: HolderRow): boolean {
  return path.length === 0 && held + graph > looked / 2;
}

/** Only C code holds it; or it was a few large blocks that had been replaced by larger ones when the copy was made. */
export function isHeldByNobody({ looked, held, garbage, graph }: HolderRow): boolean {
  return looked > 0 && held + garbage + graph === 0;
}

/** Share of the memory that Python should hold; if less is found, the copy was torn, or C code holds it. */
export const LEAST_HELD = 0.5;

/** The share that is held of what Python should hold: its own objects, and blocks that are replaced by larger ones. 1
 * if none of them was looked up. */
export function heldByPython(
  rows: readonly HolderRow[],
  sites: readonly { site: string; python: boolean; swelling: object | null }[],
): number {
  const asked = new Map(sites.map((site) => [site.site, site]));
  const own = rows.flatMap((row) => {
    const { python = false, swelling = null } = asked.get(row.site) ?? {};
    // Blocks that swell have a holder even if the copy does not show it.
    const looked = swelling === null ? row.looked : Math.max(1, row.looked);
    return looked > 0 && (python || swelling !== null) ? [{ ...row, looked }] : [];
  });
  return own.length === 0 ? 1 : heldShare(own);
}

/** Share of the looked-up addresses that a Python object or garbage holds; 0 if none was looked up. */
export function heldShare(rows: readonly HolderRow[]): number {
  const looked = rows.reduce((sum, row) => sum + row.looked, 0);
  return rows.reduce((sum, { held, garbage }) => sum + held + garbage, 0) / Math.max(1, looked);
}

function countsOf({ looked, held, garbage, graph, unreferenced = 0 }: HolderRow) {
  return { looked, held, garbage, graph, unreferenced };
}
