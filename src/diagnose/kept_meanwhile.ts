import type { Observations } from "./observations.js";
import { mayKeep, type SiteJudgement } from "./suspects.js";

/** Sites of the program's own code that look as if they kept what they make, in too few samples to be accused. */
export function littleKept({ sites, evidence }: Observations): SiteJudgement[] {
  const histories = evidence.sites;
  return histories === undefined
    ? []
    : sites.filter(
        (judgement) =>
          judgement.site.own &&
          judgement.course === "small" &&
          mayKeep(judgement, histories, evidence.window.startMs),
      );
}

/** A library with an allocator of its own: samples fall on the small objects alone that hold its memory. The growth
 * that nobody sees is divided by what they grow by. */
export function keptMeanwhile(observations: Observations, unseenSlope: number): SiteJudgement[] {
  const small = littleKept(observations);
  const all = small.reduce((sum, { slope }) => sum + slope, 0);
  return small.map((judgement) => ({
    ...judgement,
    slope: (judgement.slope / all) * unseenSlope,
  }));
}
