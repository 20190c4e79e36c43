import type { Observations } from "./observations.js";
import { mayKeep, type SiteJudgement } from "./suspects.js";

/** A library with an allocator of its own: samples fall on the small objects alone that hold its memory. The growth
 * that nobody sees is divided by what they grow by. */
export function keptMeanwhile(
  { sites, evidence }: Observations,
  unseenSlope: number,
): SiteJudgement[] {
  const histories = evidence.sites;
  if (histories === undefined) {
    return [];
  }
  const small = sites.filter(
    (judgement) =>
      judgement.site.own &&
      judgement.course === "small" &&
      mayKeep(judgement, histories, evidence.window.startMs),
  );
  const all = small.reduce((sum, { slope }) => sum + slope, 0);
  return small.map((judgement) => ({
    ...judgement,
    slope: (judgement.slope / all) * unseenSlope,
  }));
}
