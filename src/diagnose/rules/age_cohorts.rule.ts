import { headlineOf } from "../headline.js";
import { type Rule, silent } from "../rule.js";
import { bytesText, frameText, percent, rateText } from "../words.js";

/** Survivors of every age, and more of them all the time: the site keeps what it makes. */
export const ageCohorts: Rule = {
  name: "age-cohorts",
  judge({ suspects, sites, evidence }) {
    if (!evidence.sites) {
      return null;
    }
    const [first] = suspects;
    if (!first) {
      const [largest] = sites;
      return largest
        ? silent(
            `No site keeps what it makes: of the largest, ${frameText(headlineOf(largest.site))}, ${bytesText(largest.keptBytes)} of the window live, ${
              {
                fills: "and it rises no more",
                churns: "all of it young",
                small: "too little to count",
                hints: "in too few samples",
                keeps: "",
              }[largest.course]
            }.`,
          )
        : silent("No allocation of the window lives.");
    }
    const all = suspects.reduce((sum, { slope }) => sum + slope, 0);
    return {
      says: "leak",
      kind: "python-leak",
      weight: first.course === "hints" ? 0.7 : 0.9,
      detail: `${frameText(headlineOf(first.site))} has survivors of every age: ${bytesText(first.keptBytes)} of the window live, ${rateText(first.slope)}, ${percent(first.slope / all)} of what grows.`,
      suspects,
    };
  },
};
