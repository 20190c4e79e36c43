import type { Bytes } from "../../model/base/units.js";
import type { Observations } from "../evidence/observations.js";
import { mayKeep, type SiteJudgement } from "../sites/suspects.js";

/** Sites of the program's own code that look as if they kept what they make, in too few samples to be accused. */
function littleKept({ sites, evidence }: Observations): SiteJudgement[] {
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

/** Of birth, after the first third; the youngest holds what is only passing through. */
const FEWEST_SLICES = 2;

/** Sites of the program's own code that leave something alive now and then, in however few samples and be it that they
 * grow no more: a page is not given back while a block of it lives. */
export function pinsPages({ sites, evidence }: Observations): SiteJudgement[] {
  const { startMs, endMs } = evidence.window;
  const settledMs = startMs + (endMs - startMs) / 3;
  const slices = (evidence.sites?.cohorts ?? []).slice(0, -1);
  return sites.filter(
    ({ site }) =>
      site.own &&
      slices.filter((bound, n) => bound > settledMs && (site.cohortBytes[n] as number) > 0)
        .length >= FEWEST_SLICES,
  );
}

/** Of what is filled: less may be blocks that were there before. */
const LEAST_OF_FILLED = 0.5;

/** Sites of those that ask for large blocks now and then and keep them: pools of a library, filled little by little,
 * whose pages become resident long after they were asked for. `filledBytes`: what was filled meanwhile. */
export function fillsBlocks(observations: Observations, filledBytes: Bytes): SiteJudgement[] {
  const isLarge = ({ site }: SiteJudgement) =>
    (site.largeBytes?.at(-1) ?? 0) >= LEAST_OF_FILLED * (site.liveBytes.at(-1) ?? 0);
  const pools = pinsPages(observations).filter(isLarge);
  const kept = pools.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
  return kept >= LEAST_OF_FILLED * filledBytes ? pools : [];
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
