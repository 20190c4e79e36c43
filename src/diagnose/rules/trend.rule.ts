import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import { type Observations, SMALLEST_RISE_BYTES } from "../evidence/observations.js";
import { type Rule, silent } from "./rule.js";

/** What RSS alone says; the word of those rules that know more goes before it. */
export const trend: Rule = {
  name: "trend",
  judge(observations) {
    const { target } = observations;
    const rss = target.growth("rssBytes");
    if (rss.shape === "short") {
      return null;
    }
    if (target.grows("rssBytes")) {
      return grows(observations);
    }
    if (rss.shape === "stepped") {
      return {
        says: "no leak",
        kind: "steady",
        weight: 0.45,
        detail: `RSS rose in one or two steps, to ${formatBytesBriefly(rss.level)}, and stays between them.`,
      };
    }
    if (rss.wholeRise >= SMALLEST_RISE_BYTES && rss.wholeRise > 0.1 * rss.level) {
      return {
        says: "no leak",
        kind: "warm-up",
        weight: 0.5,
        detail: `RSS rose by ${formatBytesBriefly(rss.wholeRise)} at the start and is flat since, at ${formatBytesBriefly(rss.level)}.`,
      };
    }
    return {
      says: "no leak",
      kind: "steady",
      weight: 0.5,
      detail: `RSS is ${formatBytesBriefly(rss.level)} and its growth is negligible.`,
    };
  },
};

/** RSS alone cannot name a kind: it asks for what would. */
function grows({ target, suspects, evidence }: Observations): ReturnType<Rule["judge"]> {
  const rss = target.growth("rssBytes");
  const detail = `RSS grows by ${formatSlopeBriefly(rss.slope)}, to ${formatBytesBriefly(rss.level)} now`;
  return evidence.sites || suspects.length > 0
    ? silent(`${detail}.`)
    : {
        says: "leak",
        kind: "insufficient-evidence",
        weight: 0.55,
        detail: `${detail}; which part of it, only an agent or a ledger would tell.`,
        growth: rss,
      };
}
