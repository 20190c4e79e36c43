/**
 * File mappings and copies are separate from memory in a snapshot, but in the same table if rows are counted, written
 * or joined: a segment's sites, and a recording's samples.
 */
import { foldSites } from "./fold_sites.js";
import { COPIES_DOMAIN, FILES_DOMAIN, type ProfileSnapshot, type SiteTable } from "./profile.js";
import { pickSites } from "./site_columns.js";

type Tables = Pick<ProfileSnapshot, "sites" | "files" | "copies">;

/** Splits one table into those of a snapshot. `cohortCount` is that of the table. */
export function partTables(table: SiteTable, cohortCount: number): Tables {
  const rows = Array.from(table.domain.keys());
  const of = (domain: number) =>
    pickSites(
      table,
      rows.filter((row) => table.domain[row] === domain),
      cohortCount,
    );
  const [files, copies] = [of(FILES_DOMAIN), of(COPIES_DOMAIN)];
  if (files.length + copies.length === 0) {
    return { sites: table, files, copies };
  }
  const memory = rows.filter((row) => (table.domain[row] ?? 0) < FILES_DOMAIN);
  return { sites: pickSites(table, memory, cohortCount), files, copies };
}

/** Joins the tables of a snapshot. */
export function joinTables({
  sites,
  files,
  copies,
  cohorts,
}: Tables & Pick<ProfileSnapshot, "cohorts">): SiteTable {
  return files.length + copies.length === 0
    ? sites
    : foldSites([sites, files, copies], cohorts.length);
}
