import { isLarge, SMALLEST_RISE_BYTES } from "../observations.js";
import { type Rule, silent } from "../rule.js";
import { bytesText, percent, rateText } from "../words.js";

const MOST_OF_GROWTH = 0.5;

/** Private memory grows and what lives in it does not: the program freed it, the allocator keeps it. */
export const allocator: Rule = {
  name: "allocator",
  judge({ target, unused, suspects }) {
    if (!unused) {
      return null;
    }
    const anon = target.growth("anonRssBytes");
    const kept = suspects.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
    const grows =
      unused.rise >= SMALLEST_RISE_BYTES &&
      isLarge(anon) &&
      (anon.shape === "growing" || unused.shape === "growing") &&
      unused.rise >= MOST_OF_GROWTH * anon.rise &&
      kept < MOST_OF_GROWTH * anon.rise;
    if (!grows) {
      return silent(
        `Private memory and what lives in it go together: ${bytesText(Math.max(0, unused.level))} are not accounted for by live allocations.`,
      );
    }
    return {
      says: "leak",
      kind: "allocator-retention",
      weight: 0.85,
      detail: `Private memory grows by ${rateText(anon.slope)}, but ${percent(Math.min(1, unused.rise / anon.rise))} of that is not live: it was freed, and the allocator keeps ${bytesText(unused.level)}.`,
      growth: anon,
    };
  },
};
