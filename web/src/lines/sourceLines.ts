/** Figures of a snapshot by source line: each allocation counts for the innermost line of the file. */
import { float64At, uint32At } from "../../../src/model/base/columns.js";
import type { ReportSource } from "../../../src/model/documents/report_document.js";
import {
  Domain,
  type ProfileSnapshot,
  type ProfileTables,
  type SiteTable,
  type SiteValue,
} from "../../../src/model/profile/profile.js";

export interface LineAmount {
  /** Of Python's own allocators, and of native code. */
  readonly python: number;
  readonly native: number;
  /** Bytes that memcpy and memmove copied, until the moment of the snapshot. */
  readonly copied: number;
}

export interface FileAmounts {
  readonly source: ReportSource;
  readonly total: number;
  /** Whether copies were counted. */
  readonly hasCopies: boolean;
  /** By line number. */
  readonly lines: ReadonlyMap<number, LineAmount>;
}

/** Every source, the largest first. */
export function amountsOf(
  tables: ProfileTables,
  snapshot: ProfileSnapshot | null,
  rows: Uint32Array,
  value: SiteValue,
  sources: readonly ReportSource[],
): FileAmounts[] {
  const files = new Map<number, Map<number, LineAmount>>();
  for (const { file } of sources) {
    files.set(tables.strings.indexOf(file), new Map());
  }
  for (const row of snapshot === null ? [] : rows) {
    const { sites } = snapshot as ProfileSnapshot;
    const kind = sites.domain[row] === Domain.python ? "python" : "native";
    addRow(tables, { table: sites, row, amount: float64At(sites[value], row), kind }, files);
  }
  const copies = snapshot?.copies;
  for (let row = 0; copies !== undefined && row < copies.length; row++) {
    const amount = float64At(copies.allocatedBytes, row);
    addRow(tables, { table: copies, row, amount, kind: "copied" }, files);
  }
  const amounts = sources.map((source): FileAmounts => {
    const lines = files.get(tables.strings.indexOf(source.file)) ?? new Map<number, LineAmount>();
    const total = [...lines.values()].reduce((sum, { python, native }) => sum + python + native, 0);
    return { source, total, lines, hasCopies: (copies?.length ?? 0) > 0 };
  });
  return amounts.sort((a, b) => b.total - a.total);
}

interface AddedRow {
  readonly table: SiteTable;
  readonly row: number;
  readonly amount: number;
  readonly kind: keyof LineAmount;
}

function addRow(
  { stacks, frames }: ProfileTables,
  { table, row, amount, kind }: AddedRow,
  files: Map<number, Map<number, LineAmount>>,
): void {
  if (amount <= 0) {
    return;
  }
  const seen = new Set<number>();
  for (let at = uint32At(table.stack, row); at !== 0; at = uint32At(stacks.parent, at)) {
    const frame = uint32At(stacks.frame, at);
    const file = uint32At(frames.file, frame);
    const lines = files.get(file);
    if (lines === undefined || seen.has(file)) {
      continue;
    }
    seen.add(file);
    const number = uint32At(frames.line, frame);
    const before = lines.get(number) ?? { python: 0, native: 0, copied: 0 };
    lines.set(number, { ...before, [kind]: before[kind] + amount });
  }
}

/** A run of lines: shown, or folded away because nothing near them allocates. */
export interface LineRun {
  readonly first: number;
  readonly last: number;
  readonly folded: boolean;
}

const CONTEXT = 6;
const SMALLEST_FOLD = 4;

export function runsOf(count: number, lines: ReadonlyMap<number, LineAmount>): LineRun[] {
  const near = new Uint8Array(count + 1);
  for (const number of lines.keys()) {
    near.fill(1, Math.max(1, number - CONTEXT), Math.min(count, number + CONTEXT) + 1);
  }
  const runs: LineRun[] = [];
  for (let first = 1; first <= count; ) {
    let last = first;
    while (last < count && near[last + 1] === near[first]) {
      last++;
    }
    const folded = near[first] === 0 && last - first + 1 >= SMALLEST_FOLD;
    runs.push({ first, last, folded });
    first = last + 1;
  }
  return runs;
}
