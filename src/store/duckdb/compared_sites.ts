/** Compares two profiles of a stream site by site, and keeps as much of the earlier one as that needs. */
import { uint8At, uint16At, uint32At } from "../../model/base/columns.js";
import { mixHash } from "../../model/base/row_index.js";
import type { SiteIndex } from "../../model/base/units.js";
import type { SiteTable } from "../../model/profile/profile.js";

/** The columns in which a site is compared with the same site of the next profile. */
const COMPARED = [
  ...(["stack", "process", "thread", "label", "domain"] as const),
  ...(["liveBytes", "allocatedObjects", "allocatedBytes"] as const),
] as const;
export type ComparedSites = Pick<SiteTable, (typeof COMPARED)[number] | "length">;

/** Copies: the profile's own columns are views of a much larger frame. */
export function comparedOf(sites: SiteTable): ComparedSites {
  const copies = COMPARED.map((name) => [name, sites[name].slice(0, sites.length)]);
  return { ...(Object.fromEntries(copies) as Omit<ComparedSites, "length">), length: sites.length };
}

export function siteHash(sites: SiteTable, site: SiteIndex): number {
  const place = mixHash(mixHash(0, uint32At(sites.stack, site)), uint32At(sites.thread, site));
  return mixHash(
    mixHash(place, uint32At(sites.label, site)),
    uint16At(sites.process, site) * 4 + uint8At(sites.domain, site),
  );
}

export function sameSite(
  a: ComparedSites,
  row: SiteIndex,
  b: ComparedSites,
  other: SiteIndex,
): boolean {
  return (
    a.stack[row] === b.stack[other] &&
    a.process[row] === b.process[other] &&
    a.thread[row] === b.thread[other] &&
    a.label[row] === b.label[other] &&
    a.domain[row] === b.domain[other]
  );
}
