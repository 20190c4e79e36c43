import { type Rule, silent } from "../rule.js";
import { timeText } from "../words.js";

const SHORTEST_MS = 8_000;
const FEWEST_POINTS = 16;

/** A window too short to tell growth from a start. */
export const window: Rule = {
  name: "window",
  judge({ windowMs, target }) {
    const points = target.readings("rssBytes").values.length;
    if (windowMs >= SHORTEST_MS && points >= FEWEST_POINTS) {
      return silent(`${timeText(windowMs)} with ${points} readings are enough to tell.`);
    }
    return {
      says: "silent",
      kind: "insufficient-evidence",
      weight: 0.995,
      detail: `The window is ${timeText(windowMs)} long with ${points} readings: growth cannot be told from a start. ${timeText(30_000)} or more would settle it.`,
    };
  },
};
