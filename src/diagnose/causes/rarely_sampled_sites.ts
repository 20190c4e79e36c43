import type { Bytes } from "../../model/base/units.js";
import type { Observations } from "../evidence/observations.js";
import { mayKeep, type SiteJudgement } from "../sites/suspects.js";

/** Sites of the program's own code that seem to keep what they allocate, but in too few samples to be accused. */
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

/** Slices of allocation time after the first third; the youngest also contains temporary objects. */
const FEWEST_SLICES = 2;

/**
 * Sites of the program's own code that leave some blocks live, in however few samples, even if they no longer
 * grow. A page is not returned while it contains a live block.
 */
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

/** Share of the filled bytes; less may come from older blocks. */
const LEAST_OF_FILLED = 0.5;

/**
 * Sites that allocate large blocks from time to time and keep them: pools of a library that fill gradually,
 * whose pages become resident long after their allocation. `filledBytes`: bytes filled during this time.
 */
export function fillsBlocks(observations: Observations, filledBytes: Bytes): SiteJudgement[] {
  const isLarge = ({ site }: SiteJudgement) =>
    (site.largeBytes?.at(-1) ?? 0) >= LEAST_OF_FILLED * (site.liveBytes.at(-1) ?? 0);
  const pools = pinsPages(observations).filter(isLarge);
  const kept = pools.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
  return kept >= LEAST_OF_FILLED * filledBytes ? pools : [];
}

/**
 * For a library with its own allocator, only the small objects that hold its memory are sampled. Unexplained
 * growth is divided in proportion to their growth.
 */
export function keptMeanwhile(observations: Observations, unseenSlope: number): SiteJudgement[] {
  const small = littleKept(observations);
  const all = small.reduce((sum, { slope }) => sum + slope, 0);
  return small.map((judgement) => ({
    ...judgement,
    slope: (judgement.slope / all) * unseenSlope,
  }));
}
