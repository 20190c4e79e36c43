import { formatBytesBriefly } from "../../model/base/numbers.js";
import { headlineOf } from "../sites/headline_frame.js";
import type { SiteHistory } from "../sites/site_history.js";
import { isFull, roseAtEnd } from "../sites/suspects.js";
import { levelText } from "../wording/summary_sentence.js";
import { frameText } from "../wording/words.js";
import { type Rule, silent } from "./rule.js";

/** A site grew during the window and no longer does. */
export const plateau: Rule = {
  name: "plateau",
  judge(observations) {
    const { sites, suspects, evidence } = observations;
    if (!evidence.sites) {
      return null;
    }
    const histories = evidence.sites;
    const full = sites.find(
      (site) =>
        site.course === "fills" &&
        !site.site.imports && // modules are loaded once, so this is not a cache
        !fellBack(site.site) && // a cache keeps what it holds
        !roseAtEnd(site, histories, evidence.window.startMs),
    );
    if (!full) {
      return silent("No site filled up during the window.");
    }
    const where = frameText(headlineOf(full.site));
    const holds = formatBytesBriefly(full.site.liveBytes.at(-1) ?? 0);
    const now = levelText(observations);
    const isFilled = isFull(full, histories, evidence.window.startMs);
    if (suspects.length > 0) {
      // It neither explains nor contradicts the growth of the other sites, nor may it be part of what they keep.
      return silent(
        isFilled
          ? `${where} filled to ${holds} and no longer grows.`
          : `${where} keeps ${holds}, and grows more and more slowly.`,
      );
    }
    return {
      says: "no leak",
      kind: "cache-plateau",
      weight: 0.6,
      ...(isFilled
        ? {
            detail: `${where} filled to ${holds} and no longer grows.`,
            sentence: `A cache filled up: ${where} keeps ${holds}; ${now}.`,
          }
        : {
            detail: `${where} keeps ${holds}, and more and more slowly: it may be a cache that is not full yet.`,
            sentence: `A cache seems to fill up: ${where} keeps ${holds}, and grows more and more slowly; ${now}.`,
          }),
    };
  },
};

/** Share of a site's highest live bytes, beyond the sampling error, that it freed again. */
const FREED_SHARE = 0.25;
const STANDARD_ERRORS = 4;

/** Whether the site freed a large part of what it kept, at any time: a queue, a batch or a buffer, but not a cache. */
function fellBack({ liveBytes, standardErrorBytes }: SiteHistory): boolean {
  let high = 0;
  return liveBytes.some((bytes) => {
    high = Math.max(high, bytes);
    return high - bytes > Math.max(FREED_SHARE * high, STANDARD_ERRORS * standardErrorBytes);
  });
}
