import { formatShare } from "../../model/base/numbers.js";
import { fillText } from "../wording/filling_cache.js";
import { type Rule, silent } from "./rule.js";

/** Share of the private-memory growth that bounded containers must hold to explain it. */
const LEAST_OF_GROWTH = 0.25;
/** Share of all suspects' growth. If other suspects grow by more than this, they leak in addition to the cache. */
const MOST_BESIDE = 0.1;

/** The growing objects are held by a container that has a bound and is not full yet. */
export const boundedHolder: Rule = {
  name: "bounded-holder",
  judge({ bounded, suspects, target }) {
    const [first] = bounded;
    if (!first) {
      return null;
    }
    const slope = bounded.reduce((sum, { suspect }) => sum + suspect.slope, 0);
    const beside = suspects.reduce((sum, suspect) => sum + suspect.slope, 0);
    if (beside > MOST_BESIDE * (beside + slope)) {
      return silent(
        `${formatShare(slope / (beside + slope))} of the growth is in bounded containers; the rest is not.`,
      );
    }
    const { slope: all } = target.growth("anonRssBytes");
    if (target.grows("anonRssBytes") && slope < LEAST_OF_GROWTH * all) {
      return silent("Bounded containers hold only a small part of the growth of private memory.");
    }
    return {
      says: "no leak",
      kind: "cache-plateau",
      weight: 0.99,
      detail: `The growth is in a bounded container: ${fillText(first)}.`,
      suspects: bounded.map(({ suspect }) => suspect),
      namesCause: true,
    };
  },
};
