/**
 * Mappings of files stand apart from memory in a look, and in one table with it wherever rows are counted,
 * written or joined: a segment's sites, and a recording's samples.
 */
import { foldSites } from "./fold_sites.js";
import { FILES_DOMAIN, type ProfileLook, type SiteTable } from "./profile.js";
import { pickSites } from "./site_columns.js";

/** Of one table the two of a look. `cohortCount` is that of the table. */
export function partFiles(
  table: SiteTable,
  cohortCount: number,
): Pick<ProfileLook, "sites" | "files"> {
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

/** The two of a look in one table again. */
export function joinFiles({
  sites,
  files,
  cohorts,
}: Pick<ProfileLook, "sites" | "files" | "cohorts">): SiteTable {
  return files.length === 0 ? sites : foldSites([sites, files], cohorts.length);
}
