import { formatBytesBriefly } from "../../model/base/numbers.js";
import { type FilledSite, filledSites } from "../causes/filled_sites.js";
import type { Observations } from "../evidence/observations.js";
import { risesLate } from "../series/growth.js";
import { headlineOf } from "../sites/headline_frame.js";
import { filledText } from "../wording/filling_cache.js";
import { levelText } from "../wording/summary_sentence.js";
import { frameText } from "../wording/words.js";
import { type Rule, silent } from "./rule.js";

/** A site grew during the window and no longer does. */
export const plateau: Rule = {
  name: "plateau",
  judge(observations) {
    if (!observations.evidence.sites) {
      return null;
    }
    const [filled] = filledSites(observations);
    if (!filled) {
      return silent("No site filled up during the window.");
    }
    const detail = filledText(filled);
    if (replacesOlder(filled, observations)) {
      return silent(
        "What sites filled during the window took the place of older memory: memory as a whole did not rise by as much.",
      );
    }
    if (observations.suspects.length > 0) {
      // It neither explains nor contradicts the growth of the other sites.
      return silent(detail);
    }
    return {
      says: "no leak",
      kind: "cache-plateau",
      weight: 0.6,
      detail,
      sentence: `${sentenceOf(filled, observations)}; ${levelText(observations)}.`,
    };
  },
};

/** Memory as a whole rose by less than this share of what a site filled. */
const LEAST_OF_FILLED = 0.3;

/** The entries of a full cache from before an attach are not in the profile, so those that replace them seem to fill it. */
function replacesOlder(
  { judgement: { site } }: FilledSite,
  { total, evidence }: Observations,
): boolean {
  const rise = (site.liveBytes.at(-1) ?? 0) - (site.liveBytes[0] ?? 0);
  const isWhole = evidence.selection === undefined && total.shape !== "short";
  return isWhole && total.wholeRise < LEAST_OF_FILLED * rise;
}

function sentenceOf(
  { judgement: { site }, full, replaces }: FilledSite,
  { total }: Observations,
): string {
  const where = frameText(headlineOf(site));
  const bytes = formatBytesBriefly(site.liveBytes.at(-1) ?? 0);
  if (full) {
    return replaces
      ? `A cache filled up: ${where} keeps ${bytes}`
      : `${where} built up ${bytes} and then stopped: data that was loaded once, or a full cache`;
  }
  const slowly =
    total.low > 0 || risesLate(total) ? "grows more and more slowly" : "hardly grows any more";
  return `A cache seems to fill up: ${where} keeps ${bytes}, and ${slowly}`;
}
