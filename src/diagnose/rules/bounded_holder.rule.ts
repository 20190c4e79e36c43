import type { Bytes, TimeMs } from "../../model/units.js";
import type { Observations } from "../observations.js";
import { type Rule, silent } from "../rule.js";
import { type SiteJudgement, valueAt } from "../suspects.js";
import { percent } from "../words.js";

const MOST_OF_GROWTH = 0.6;
/** Of a site's live bytes when the holder was found. */
const LEAST_HELD = 0.3;

/** What grows is held by a container that carries its own bound and is not there yet. */
export const boundedHolder: Rule = {
  name: "bounded-holder",
  judge(observations) {
    const { suspects } = observations;
    const all = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const bounded = suspects.flatMap((suspect) => {
      const found = observations.holderOf(suspect);
      // What holds much less than the site has live holds some of it by chance.
      return found?.bound &&
        found.holder &&
        found.holder.retainedBytes >= LEAST_HELD * liveAt(observations, suspect, found.foundMs)
        ? [{ suspect, bound: found.bound, holder: found.holder }]
        : [];
    });
    const slope = bounded.reduce((sum, { suspect }) => sum + suspect.slope, 0);
    const [first] = bounded;
    if (!first) {
      return null;
    }
    if (slope < MOST_OF_GROWTH * all) {
      return silent("Some of what grows is in bounded containers, most is not.");
    }
    return {
      says: "no leak",
      kind: "cache-plateau",
      weight: 0.99,
      detail: `What grows is in ${first.holder.path.join(" → ")}, which is bounded: ${first.holder.entries} of at most ${first.bound} entries, ${percent(first.holder.entries / first.bound)} full.`,
    };
  },
};

/** Live bytes of a suspect at a time. */
function liveAt({ evidence }: Observations, { site }: SiteJudgement, timeMs: TimeMs): Bytes {
  const seen = site.type === undefined ? evidence.sites?.lookTimes : evidence.census?.timesMs;
  return valueAt({ lookTimes: seen ?? [] }, site.liveBytes, timeMs);
}
