/** Which sites count: by process, thread, label and allocator. */

import { uint8At, uint32At } from "../base/columns.js";
import type { LabelId, ProcessIndex, ThreadIndex } from "../base/units.js";
import type { Domain, ProfileTables, SiteTable } from "./profile.js";

/** null takes all. */
export interface SiteFilter {
  readonly process: ProcessIndex | null;
  readonly thread: ThreadIndex | null;
  /** A row of the label table: sites for which its key has its value. */
  readonly label: LabelId | null;
  readonly domain: Domain | null;
}

export const EVERY_SITE: SiteFilter = { process: null, thread: null, label: null, domain: null };

/** Rows of `sites` that pass, ascending. */
export function selectSites(
  tables: ProfileTables,
  sites: SiteTable,
  filter: SiteFilter,
): Uint32Array {
  const labels = filter.label === null ? null : labelsWith(tables, filter.label);
  const rows = new Uint32Array(sites.length);
  let count = 0;
  for (let site = 0; site < sites.length; site++) {
    if (
      (filter.process === null || sites.process[site] === filter.process) &&
      (filter.thread === null || sites.thread[site] === filter.thread) &&
      (filter.domain === null || sites.domain[site] === filter.domain) &&
      (labels === null || labels[uint32At(sites.label, site)] === 1)
    ) {
      rows[count++] = site;
    }
  }
  return rows.subarray(0, count);
}

/** By label row: 1 where the key of `wanted` has its value; an inner value of the same key wins. */
function labelsWith({ labels }: ProfileTables, wanted: LabelId): Uint8Array {
  const holds = new Uint8Array(labels.length);
  for (let row = 1; row < labels.length; row++) {
    if (labels.key[row] === labels.key[wanted]) {
      holds[row] = labels.value[row] === labels.value[wanted] ? 1 : 0;
    } else {
      holds[row] = uint8At(holds, uint32At(labels.parent, row));
    }
  }
  return holds;
}

/** One row for each different key and value, by name: "endpoint=/chat". */
export function labelChoices({
  labels,
  strings,
}: ProfileTables): { readonly label: LabelId; readonly name: string }[] {
  const choices = new Map<string, LabelId>();
  for (let row = 1; row < labels.length; row++) {
    const name = `${strings[uint32At(labels.key, row)]}=${strings[uint32At(labels.value, row)]}`;
    if (!choices.has(name)) {
      choices.set(name, row);
    }
  }
  return [...choices]
    .map(([name, label]) => ({ label, name }))
    .sort((a, b) => a.name.localeCompare(b.name));
}
