import { addAt, float64At, uint8At, uint16At, uint32At } from "../base/columns.js";
import { mixHash, RowIndex } from "../base/row_index.js";
import { LIFETIME_BUCKETS, type SiteTable } from "./profile.js";
import { newSiteTable, SITE_FIGURES, SITE_KEYS } from "./site_columns.js";

/** Concatenates tables and merges equal sites (stack, process, thread, label, domain) added up.
 * All must have `cohortCount` cohorts and ids of the same tables. */
export function foldSites(tables: readonly SiteTable[], cohortCount: number): SiteTable {
  const total = tables.reduce((sum, table) => sum + table.length, 0);
  const folded = newSiteTable(total, cohortCount);
  const index = new RowIndex();
  let length = 0;
  for (const table of tables) {
    // Looked up once, because they are used for every row.
    const { stack, process, thread, label, domain } = table;
    let row = 0;
    const isSame = (candidate: number) =>
      folded.stack[candidate] === stack[row] &&
      folded.process[candidate] === process[row] &&
      folded.thread[candidate] === thread[row] &&
      folded.label[candidate] === label[row] &&
      folded.domain[candidate] === domain[row];
    for (; row < table.length; row++) {
      const hash = mixHash(
        mixHash(
          mixHash(mixHash(uint32At(stack, row), uint16At(process, row)), uint32At(thread, row)),
          uint32At(label, row),
        ),
        uint8At(domain, row),
      );
      let target = index.find(hash, isSame);
      if (target < 0) {
        target = length++;
        index.add(hash, target);
        for (const key of SITE_KEYS) {
          folded[key][target] = table[key][row] ?? 0;
        }
      }
      addRow(folded, target, table, row, cohortCount);
    }
  }
  return firstRows(folded, length, cohortCount);
}

function addRow(
  to: SiteTable,
  toRow: number,
  from: SiteTable,
  fromRow: number,
  cohorts: number,
): void {
  for (const figure of SITE_FIGURES) {
    to[figure][toRow] = (to[figure][toRow] ?? 0) + (from[figure][fromRow] ?? 0);
  }
  for (let bucket = 0; bucket < LIFETIME_BUCKETS; bucket++) {
    const at = toRow * LIFETIME_BUCKETS + bucket;
    to.lifetimes[at] =
      (to.lifetimes[at] ?? 0) + (from.lifetimes[fromRow * LIFETIME_BUCKETS + bucket] ?? 0);
  }
  for (let cohort = 0; cohort < cohorts; cohort++) {
    addAt(
      to.cohortBytes,
      toRow * cohorts + cohort,
      float64At(from.cohortBytes, fromRow * cohorts + cohort),
    );
  }
}

/** Shorter copies of the columns, so that the longer buffers can be freed. */
function firstRows(sites: SiteTable, length: number, cohortCount: number): SiteTable {
  const first = newSiteTable(length, cohortCount);
  for (const column of [...SITE_KEYS, ...SITE_FIGURES]) {
    first[column].set(sites[column].subarray(0, length));
  }
  first.lifetimes.set(sites.lifetimes.subarray(0, length * LIFETIME_BUCKETS));
  first.cohortBytes.set(sites.cohortBytes.subarray(0, length * cohortCount));
  return first;
}
