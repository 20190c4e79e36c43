/** Figures of a snapshot by source line: each allocation counts for the innermost line of the file. */
import { float64At, uint32At } from "../../../src/model/base/columns.js";
import type { ReportSource } from "../../../src/model/documents/report_document.js";
import {
  Domain,
  type ProfileSnapshot,
  type ProfileTables,
  type SiteValue,
} from "../../../src/model/profile/profile.js";

export interface LineAmount {
  /** Of Python's own allocators, and of native code. */
  readonly python: number;
  readonly native: number;
}

export interface FileAmounts {
  readonly source: ReportSource;
  readonly total: number;
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
    addRow(tables, snapshot as ProfileSnapshot, row, value, files);
  }
  const amounts = sources.map((source): FileAmounts => {
    const lines = files.get(tables.strings.indexOf(source.file)) ?? new Map<number, LineAmount>();
    const total = [...lines.values()].reduce((sum, { python, native }) => sum + python + native, 0);
    return { source, total, lines };
  });
  return amounts.sort((a, b) => b.total - a.total);
}

function addRow(
  { stacks, frames }: ProfileTables,
  { sites }: ProfileSnapshot,
  row: number,
  value: SiteValue,
  files: Map<number, Map<number, LineAmount>>,
): void {
  const amount = float64At(sites[value], row);
  if (amount <= 0) {
    return;
  }
  const isPython = sites.domain[row] === Domain.python;
  const seen = new Set<number>();
  for (let at = uint32At(sites.stack, row); at !== 0; at = uint32At(stacks.parent, at)) {
    const frame = uint32At(stacks.frame, at);
    const file = uint32At(frames.file, frame);
    const lines = files.get(file);
    if (lines === undefined || seen.has(file)) {
      continue;
    }
    seen.add(file);
    const number = uint32At(frames.line, frame);
    const before = lines.get(number) ?? { python: 0, native: 0 };
    lines.set(number, {
      python: before.python + (isPython ? amount : 0),
      native: before.native + (isPython ? 0 : amount),
    });
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
