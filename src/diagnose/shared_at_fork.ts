/** What a process had made before it forked: its children read it where it lies, until they write. */
import type { Bytes, Pid, TimeMs } from "../model/units.js";
import type { Observations } from "./observations.js";
import { FEWEST_SAMPLES, type SiteJudgement } from "./suspects.js";

const PAGE_BYTES = 4096;

/**
 * Sites of the program's own code whose Python objects `parentPid` shares with the children that it forked at
 * `forkedMs`, by the pages that reading them can turn private: a write to a reference count turns one page,
 * however large the object. `slope`, by ms, is divided among them in that proportion.
 */
export function sharedAtFork(
  { sites, evidence }: Observations,
  parentPid: Pid,
  forkedMs: TimeMs,
  slope: number,
): SiteJudgement[] {
  const { lookTimes = [], cohorts = [] } = evidence.sites ?? {};
  const look = lookTimes.findIndex((time) => time >= forkedMs);
  // A slice of births that began before it may hold what was there.
  const slices = cohorts.findIndex((bound) => bound >= (lookTimes[look] ?? 0)) + 1;
  const shared = sites.flatMap(({ site, ...judgement }) => {
    const live = site.liveBytes.at(-1) ?? 0;
    const then = site.liveBytes[look] ?? 0;
    const born = site.cohortBytes.slice(0, slices).reduce((sum, bytes) => sum + bytes, 0);
    // What has gone since the fork is nobody's any more, what came is the parent's alone.
    const bytes = Math.min(live, then, born);
    const objects = ((site.objects[look] ?? 0) * bytes) / Math.max(1, then);
    const pages = Math.min(bytes, objects * PAGE_BYTES);
    // Of code that was imported, workers run little.
    const isOf = site.pid === parentPid && site.domain === "python" && site.own && !site.imports;
    return isOf && site.liveSamples * bytes >= FEWEST_SAMPLES * live && pages > 0
      ? [{ ...judgement, site, pages }]
      : [];
  });
  const all = shared.reduce<Bytes>((sum, { pages }) => sum + pages, 0);
  return shared.map(({ pages, ...judgement }) => ({ ...judgement, slope: (slope * pages) / all }));
}
