import { headlineOf } from "../headline.js";
import { type Rule, silent } from "../rule.js";
import type { SiteCourse } from "../suspects.js";
import { bytesText, frameText, percent, rateText } from "../words.js";

const WEIGHTS: Partial<Record<SiteCourse, number>> = { keeps: 0.9, swells: 0.8, hints: 0.7 };

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
                swells: "in few blocks, and private memory does not grow with it",
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
      weight: WEIGHTS[first.course] ?? 0.7,
      detail: `${frameText(headlineOf(first.site))} ${first.course === "swells" ? `keeps a few blocks that are made anew, larger each time: ${bytesText(first.keptBytes)} more` : `has survivors of every age: ${bytesText(first.keptBytes)} of the window live`}, ${rateText(first.slope)}, ${percent(first.slope / all)} of what grows.`,
      suspects,
    };
  },
};
