import { formatShare } from "../../model/base/numbers.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { Observations } from "../evidence/observations.js";
import { type SiteJudgement, valueAt } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

const MOST_OF_GROWTH = 0.6;
/** Of a site's live bytes when the holder was found. */
const LEAST_HELD = 0.3;

/** Of private memory's growth: less is no word on the rest. */
const LEAST_OF_ALL = 0.25;
/** What a container held when it was full, and this many times that at the end: its entries grow. */
const MOST_SINCE_FULL = 1.25;

/** What grows is held by a container that carries its own bound and is not there yet. */
export const boundedHolder: Rule = {
  name: "bounded-holder",
  judge(observations) {
    const { suspects, target } = observations;
    const all = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const bounded = suspects.flatMap((suspect) => {
      const found = observations.holderOf(suspect);
      if (!found?.bound || !found.holder) {
        return [];
      }
      const { bound, holder, foundMs } = found;
      const then = liveAt(observations, suspect, foundMs);
      const grew =
        holder.entries >= bound &&
        liveAt(observations, suspect, observations.evidence.window.endMs) > MOST_SINCE_FULL * then;
      // What holds much less than the site has live holds some of it by chance.
      return holder.retainedBytes >= LEAST_HELD * then && !grew ? [{ suspect, bound, holder }] : [];
    });
    const slope = bounded.reduce((sum, { suspect }) => sum + suspect.slope, 0);
    const [first] = bounded;
    if (!first) {
      return null;
    }
    if (slope < MOST_OF_GROWTH * all) {
      return silent("Some of what grows is in bounded containers, most is not.");
    }
    if (
      target.grows("anonRssBytes") &&
      slope < LEAST_OF_ALL * target.growth("anonRssBytes").slope
    ) {
      return silent("What is in bounded containers is little of what private memory grows by.");
    }
    return {
      says: "no leak",
      kind: "cache-plateau",
      weight: 0.99,
      detail: `What grows is in ${first.holder.path.join(" → ")}, which is bounded: ${first.holder.entries} of at most ${first.bound} entries, ${formatShare(first.holder.entries / first.bound)} full.`,
    };
  },
};

/** Live bytes of a suspect at a time. */
function liveAt({ evidence }: Observations, { site }: SiteJudgement, timeMs: TimeMs): Bytes {
  const seen = site.type === undefined ? evidence.sites?.lookTimes : evidence.census?.timesMs;
  return valueAt({ lookTimes: seen ?? [] }, site.liveBytes, timeMs);
}
