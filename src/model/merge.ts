/** Profiles of different recordings, brought to the same tables: to be added up, or compared. */
import { foldSites } from "./fold.js";
import type { Profile, ProfileLook, ProfileTables, SiteTable } from "./profile.js";
import { newSiteTable, SITE_FIGURES } from "./site_columns.js";
import { ProfileTablesBuilder, type TablesMap } from "./tables_builder.js";
import type { TimeMs } from "./units.js";

/** Looks at the same tables: their ids mean the same. */
export interface AlignedLooks {
  readonly tables: ProfileTables;
  readonly looks: readonly ProfileLook[];
}

/** Each profile's look, with ids of one set of tables, equal frames, stacks and labels being one row. */
export function alignProfiles(profiles: readonly Profile[]): AlignedLooks {
  const builder = new ProfileTablesBuilder();
  const maps = profiles.map((profile) => builder.absorb(profile));
  const tables = builder.tables();
  const looks = profiles.map((profile, index) => {
    const { timeMs, durationMs, cohorts } = profile;
    const map = maps[index]!;
    const peakMs = tables.processes.map(() => 0);
    profile.peakMs.forEach((time, process) => {
      peakMs[map.processes[process]!] = time;
    });
    return { timeMs, durationMs, cohorts, peakMs, sites: mapped(profile.sites, map) };
  });
  return { tables, looks };
}

/** All profiles as one: the sums over equal sites (same stack, process, thread, label and domain). */
export function mergeProfiles(profiles: readonly Profile[]): Profile {
  const { tables, looks } = alignProfiles(profiles);
  const cohorts = [...new Set(looks.flatMap((look) => look.cohorts))].sort((a, b) => a - b);
  const parts = looks.map((look) => ({ ...look.sites, cohortBytes: toCohorts(look, cohorts) }));
  return {
    ...tables,
    timeMs: Math.max(0, ...looks.map((look) => look.timeMs)),
    durationMs: Math.max(0, ...looks.map((look) => look.durationMs)),
    cohorts,
    peakMs: tables.processes.map((_, process) =>
      Math.max(0, ...looks.map((look) => look.peakMs[process]!)),
    ),
    sites: foldSites(parts, cohorts.length),
  };
}

function mapped(sites: SiteTable, map: TablesMap): SiteTable {
  const through = <Ids extends Uint16Array | Uint32Array>(ids: Ids, to: Uint32Array): Ids =>
    ids.map((id) => to[id]!) as Ids;
  return {
    ...sites,
    stack: through(sites.stack, map.stacks),
    process: through(sites.process, map.processes),
    thread: through(sites.thread, map.threads),
    label: through(sites.label, map.labels),
  };
}

/** A cohort's bytes go to the cohort of `bounds` that ends with it. */
function toCohorts({ sites, cohorts }: ProfileLook, bounds: readonly TimeMs[]): Float64Array {
  const targets = cohorts.map((bound) => bounds.indexOf(bound));
  const bytes = new Float64Array(sites.length * bounds.length);
  for (let site = 0; site < sites.length; site++) {
    targets.forEach((target, cohort) => {
      bytes[site * bounds.length + target]! += sites.cohortBytes[site * cohorts.length + cohort]!;
    });
  }
  return bytes;
}

/** What differs between two looks at the same tables, site by site: after less before. Variances of
 * independent estimates add up. */
export function siteDifferences(before: ProfileLook, after: ProfileLook): SiteTable {
  const negated = newSiteTable(before.sites.length, 0);
  for (const key of ["stack", "process", "thread", "label", "domain"] as const) {
    negated[key].set(before.sites[key]);
  }
  for (const figure of SITE_FIGURES) {
    const sign = figure.endsWith("Variance") || figure === "liveSamples" ? 1 : -1;
    negated[figure].set(before.sites[figure].map((value) => sign * value));
  }
  const after0 = { ...after.sites, cohortBytes: new Float64Array(0) };
  return { ...foldSites([negated, after0], 0) };
}
