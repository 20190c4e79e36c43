/**
 * File mappings are separate from memory in a snapshot, but in the same table if rows are counted, written or
 * joined: a segment's sites, and a recording's samples.
 */
import { foldSites } from "./fold_sites.js";
import { FILES_DOMAIN, type ProfileSnapshot, type SiteTable } from "./profile.js";
import { pickSites } from "./site_columns.js";

/** Splits one table into the two of a snapshot. `cohortCount` is that of the table. */
export function partFiles(
  table: SiteTable,
  cohortCount: number,
): Pick<ProfileSnapshot, "sites" | "files"> {
  const rows = Array.from(table.domain.keys());
  const files = rows.filter((row) => table.domain[row] === FILES_DOMAIN);
  if (files.length === 0) {
    return { sites: table, files: pickSites(table, [], cohortCount) };
  }
  const memory = rows.filter((row) => table.domain[row] !== FILES_DOMAIN);
  return {
    sites: pickSites(table, memory, cohortCount),
    files: pickSites(table, files, cohortCount),
  };
}

/** Joins the two tables of a snapshot. */
export function joinFiles({
  sites,
  files,
  cohorts,
}: Pick<ProfileSnapshot, "sites" | "files" | "cohorts">): SiteTable {
  return files.length === 0 ? sites : foldSites([sites, files], cohorts.length);
}
