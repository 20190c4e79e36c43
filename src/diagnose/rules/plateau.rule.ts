import { formatBytesBriefly } from "../../model/base/numbers.js";
import { filledSites } from "../causes/filled_sites.js";
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
    const { site } = filled.judgement;
    const keeps = `${frameText(headlineOf(site))} keeps ${formatBytesBriefly(site.liveBytes.at(-1) ?? 0)}`;
    const now = levelText(observations);
    return {
      says: "no leak",
      kind: "cache-plateau",
      weight: 0.6,
      detail,
      sentence: filled.full
        ? `A cache filled up: ${keeps}; ${now}.`
        : `A cache seems to fill up: ${keeps}, and grows more and more slowly; ${now}.`,
    };
  },
};
