/**
 * Objects that a process created before it forked, and the code that reads them in its children. Each read of a
 * Python object writes its reference count, which makes its page private.
 */
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";
import type { Observations } from "../evidence/observations.js";
import type { SiteHistory } from "../sites/site_history.js";
import type { SiteJudgement } from "../sites/suspects.js";

const PAGE_BYTES = 4096;
/**
 * Loading at full speed before a fork is sampled coarsely. A few samples of megabytes are enough, because only
 * the order matters; the children's metrics already show that pages become private.
 */
const FEWEST_SAMPLES = 3;
/** Share of the children's own allocations; a function with less is not a large part of their work. */
const LEAST_OF_WORK = 0.25;
/** Fewer samples are not enough. */
const LEAST_ASKED: Bytes = 1_000_000;

/**
 * Sites of the program's own code whose Python objects `parentPid` shares with the children it forked at
 * `forkedMs`, ordered by the number of pages that reading them can make private. A write to a reference count
 * affects one page, however large the object is. `slope`, in bytes per ms, is divided among them in that
 * proportion.
 */
export function sharedAtFork(
  { sites, evidence }: Observations,
  parentPid: Pid,
  forkedMs: TimeMs,
  slope: number,
): SiteJudgement[] {
  const { snapshotTimes = [], cohorts = [] } = evidence.sites ?? {};
  const snapshot = snapshotTimes.findIndex((time) => time >= forkedMs);
  // A slice of allocation times that began before the fork may contain older objects.
  const slices = cohorts.findIndex((bound) => bound >= (snapshotTimes[snapshot] ?? 0)) + 1;
  const shared = sites.flatMap(({ site, ...judgement }) => {
    const live = site.liveBytes.at(-1) ?? 0;
    const then = site.liveBytes[snapshot] ?? 0;
    const born = site.cohortBytes.slice(0, slices).reduce((sum, bytes) => sum + bytes, 0);
    // Objects freed since the fork are gone; newer ones belong only to the parent.
    const bytes = Math.min(live, then, born);
    const objects = ((site.objects[snapshot] ?? 0) * bytes) / Math.max(1, then);
    const pages = Math.min(bytes, objects * PAGE_BYTES);
    // Workers run only a small part of imported code.
    const isOf = site.pid === parentPid && site.domain === "python" && site.own && !site.imports;
    return isOf && site.liveSamples * bytes >= FEWEST_SAMPLES * live && pages > 0
      ? [{ ...judgement, site, pages }]
      : [];
  });
  const all = shared.reduce<Bytes>((sum, { pages }) => sum + pages, 0);
  return shared.map(({ pages, ...judgement }) => ({ ...judgement, slope: (slope * pages) / all }));
}

/**
 * The functions of the program's own code that the children `pids` run most, measured by their allocations,
 * including freed ones, because reading objects allocates nothing itself. `slope`, in bytes per ms, is divided
 * among them.
 */
export function readersInChildren(
  { evidence }: Observations,
  pids: ReadonlySet<Pid>,
  slope: number,
): SiteJudgement[] {
  const { sites = [], passing = [] } = evidence.sites ?? {};
  const byPlace = new Map<string, SiteHistory[]>();
  for (const site of [...sites, ...passing]) {
    if (pids.has(site.pid) && site.own && !site.imports) {
      byPlace.set(site.place, [...(byPlace.get(site.place) ?? []), site]);
    }
  }
  const works = [...byPlace.values()].map((same) => ({
    site: same.reduce((most, next) => (askedBy(next) > askedBy(most) ? next : most)),
    asked: same.reduce<Bytes>((sum, site) => sum + askedBy(site), 0),
  }));
  const all = works.reduce<Bytes>((sum, { asked }) => sum + asked, 0);
  return works
    .filter(({ asked }) => asked >= LEAST_ASKED && asked >= LEAST_OF_WORK * all)
    .sort((a, b) => b.asked - a.asked)
    .map(({ site, asked }) => ({
      site,
      course: "churns",
      keptBytes: 0,
      slope: (slope * asked) / all,
    }));
}

function askedBy({ allocatedBytes }: SiteHistory): Bytes {
  return allocatedBytes.at(-1) ?? 0;
}
