import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import { headlineOf } from "../sites/headline_frame.js";
import {
  FEWEST_SAMPLES,
  mayKeep,
  roseAtEnd,
  type SiteCourse,
  type SiteJudgement,
  SMALLEST_KEPT_BYTES,
} from "../sites/suspects.js";
import { settledBy } from "../wording/window_needed.js";
import { frameText } from "../wording/words.js";
import { open, type Rule } from "./rule.js";

/** Growth slower than this (bytes per ms; half a MiB per minute) needs a window of hours. */
const LEAST_SLOPE = 2 ** 19 / 60_000;
/** Every program keeps this few bytes or this few samples. */
const LEAST_KEPT_BYTES = 500_000;
const LEAST_SAMPLES = 5;
const UNSURE = new Set<SiteCourse>(["small", "hints"]);
const MS_PER_MINUTE = 60_000;
/** 95 %: among many sites with few samples, some look larger than they are. */
const STANDARD_ERRORS = 2;

/** A site may leak, but the window is too short for its rate. The verdict states the window length that is needed. */
export const smallGrowth: Rule = {
  name: "small-growth",
  judge(observations) {
    const { sites, suspects, evidence, windowMs } = observations;
    if (!evidence.sites || suspects.length > 0) {
      return null;
    }
    const histories = evidence.sites;
    const { startMs } = evidence.window;
    const [first] = sites
      .filter(
        (judgement) =>
          leastSlope(judgement) >= LEAST_SLOPE &&
          judgement.keptBytes >= LEAST_KEPT_BYTES &&
          keptSamples(judgement) >= LEAST_SAMPLES &&
          (judgement.course === "fills"
            ? roseAtEnd(judgement, histories, startMs)
            : UNSURE.has(judgement.course) && mayKeep(judgement, histories, startMs)),
      )
      .sort((a, b) => b.slope - a.slope);
    if (!first) {
      return null;
    }
    const neededMs = Math.max(windowMs + MS_PER_MINUTE, windowNeeded(first, windowMs));
    const detail = `${frameText(headlineOf(first.site))} keeps ${formatSlopeBriefly(first.slope)}, ${formatBytesBriefly(first.keptBytes)} so far: too little, or too uneven, to distinguish a leak from start-up; ${settledBy(observations, neededMs)}.`;
    return open(detail, 0.55, neededMs);
  },
};

/** Lower bound of its growth, in bytes per ms. */
function leastSlope({ site, keptBytes, slope }: SiteJudgement): number {
  return slope * (1 - (STANDARD_ERRORS * site.standardErrorBytes) / Math.max(1, keptBytes));
}

/** The window length after which the site keeps as many bytes, in as many samples, as a suspect must. */
function windowNeeded(judgement: SiteJudgement, windowMs: number): number {
  return Math.max(
    (1.5 * SMALLEST_KEPT_BYTES) / judgement.slope,
    (windowMs * FEWEST_SAMPLES) / keptSamples(judgement),
  );
}

function keptSamples({ site, keptBytes }: SiteJudgement): number {
  const live = site.liveBytes.at(-1) ?? 0;
  return live > 0 ? (site.liveSamples * keptBytes) / live : 0;
}
