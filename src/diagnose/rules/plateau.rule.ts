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
