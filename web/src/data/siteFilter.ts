/** Which sites count: by process, thread, label and allocator. */
import type { ProfileTables, SiteTable } from "../../../src/model/profile.js";

/** Row numbers and codes as in the model's tables; null takes all. */
export interface SiteFilter {
  readonly process: number | null;
  readonly thread: number | null;
  /** A row of the label table: sites under it or under any other row with the same key and value. */
  readonly label: number | null;
  readonly domain: number | null;
}

export const EVERY_SITE: SiteFilter = { process: null, thread: null, label: null, domain: null };

/** Rows of `sites` that pass, ascending. */
export function rowsPassing(
  tables: ProfileTables,
  sites: SiteTable,
  filter: SiteFilter,
): Uint32Array {
  const labels = filter.label === null ? null : labelsUnder(tables, filter.label);
  const rows = new Uint32Array(sites.length);
  let count = 0;
  for (let row = 0; row < sites.length; row++) {
    if (filter.process !== null && sites.process[row] !== filter.process) continue;
    if (filter.thread !== null && sites.thread[row] !== filter.thread) continue;
    if (filter.domain !== null && sites.domain[row] !== filter.domain) continue;
    if (labels !== null && labels[sites.label[row]] === 0) continue;
    rows[count++] = row;
  }
  return rows.subarray(0, count);
}

/** By label row: 1 where the chain holds the key and value of `wanted`. */
function labelsUnder({ labels }: ProfileTables, wanted: number): Uint8Array {
  const under = new Uint8Array(labels.length);
  for (let row = 1; row < labels.length; row++) {
    const same =
      labels.key[row] === labels.key[wanted] && labels.value[row] === labels.value[wanted];
    under[row] = same || under[labels.parent[row]] === 1 ? 1 : 0;
  }
  return under;
}

/** One row for each different key and value, by name. */
export function labelChoices({
  labels,
  strings,
}: ProfileTables): { label: number; name: string }[] {
  const choices = new Map<string, number>();
  for (let row = 1; row < labels.length; row++) {
    const name = `${strings[labels.key[row]]}=${strings[labels.value[row]]}`;
    if (!choices.has(name)) choices.set(name, row);
  }
  return [...choices]
    .map(([name, label]) => ({ label, name }))
    .sort((a, b) => a.name.localeCompare(b.name));
}
