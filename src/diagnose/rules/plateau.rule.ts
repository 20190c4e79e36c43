import { formatBytesBriefly } from "../../model/base/numbers.js";
import { headlineOf } from "../sites/headline_frame.js";
import { isFull, roseAtEnd } from "../sites/suspects.js";
import { frameText } from "../wording/words.js";
import { type Rule, silent } from "./rule.js";

/** A site grew during the window and no longer does. */
export const plateau: Rule = {
  name: "plateau",
  judge({ sites, evidence }) {
    if (!evidence.sites) {
      return null;
    }
    const histories = evidence.sites;
    const full = sites.find(
      (site) =>
        site.course === "fills" &&
        !site.site.imports && // modules are loaded once, so this is not a cache
        !roseAtEnd(site, histories, evidence.window.startMs),
    );
    if (!full) {
      return silent("No site filled up during the window.");
    }
    return {
      says: "no leak",
      kind: "cache-plateau",
      weight: 0.6,
      detail: `${frameText(headlineOf(full.site))} filled to ${formatBytesBriefly(full.site.liveBytes.at(-1) ?? 0)} and ${isFull(full, histories, evidence.window.startMs) ? "no longer grows" : "may be a cache that is not full yet"}.`,
    };
  },
};
