import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatShare,
  formatSlopeBriefly,
} from "../../model/base/numbers.js";
import { growthShown } from "../series/total_growth.js";
import { headlineOf } from "../sites/headline_frame.js";
import type { SiteCourse, SiteJudgement } from "../sites/suspects.js";
import { frameText } from "../wording/words.js";
import { type Rule, silent } from "./rule.js";

const WEIGHTS: Partial<Record<SiteCourse, number>> = {
  keeps: 0.9,
  accumulates: 0.88,
  doubles: 0.85,
  swells: 0.8,
  hints: 0.7,
};

/** A site keeps what it allocates: survivors of every age, or live bytes that rise throughout. */
export const ageCohorts: Rule = {
  name: "age-cohorts",
  judge({ suspects, sites, evidence, total }) {
    if (!evidence.sites) {
      return null;
    }
    const [first] = suspects;
    if (!first) {
      const [largest] = sites;
      return largest
        ? silent(
            `No site keeps what it makes: of the largest, ${frameText(headlineOf(largest.site))}, ${formatBytesBriefly(largest.keptBytes)} of the window live, ${
              {
                fills: "and most of that came within a short part of it",
                churns: "all of it young",
                small: "too little to count",
                hints: "in too few samples",
                swells: "in few blocks, and private memory does not grow with it",
                doubles: "in one block that is not filled",
                keeps: "",
                accumulates: "",
              }[largest.course]
            }.`,
          )
        : silent("No allocation of the window lives.");
    }
    const kept = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const all = growthShown(total, kept);
    const ofPlace = suspects.reduce(
      (sum, { site, slope }) => sum + (site.place === first.site.place ? slope : 0),
      0,
    );
    return {
      says: "leak",
      kind: "python-leak",
      weight: WEIGHTS[first.course] ?? 0.7,
      detail: `${frameText(headlineOf(first.site))} ${courseText(first)}, ${formatSlopeBriefly(ofPlace)}, ${formatShare(ofPlace / all)} of what grows.`,
      suspects,
    };
  },
};

function courseText({ course, keptBytes, backlog }: SiteJudgement): string {
  switch (course) {
    case "accumulates":
      return backlog
        ? `allocates items that wait: ${formatSlopeBriefly(backlog.producedSlope)} come in, ${formatSlopeBriefly(backlog.consumedSlope)} are freed, and the oldest has waited ${formatDurationBriefly(backlog.waitingMs)}, longer all the time`
        : `has more and more live bytes: ${formatBytesBriefly(keptBytes)} more after the first third of the window`;
    case "swells":
      return `keeps a few large blocks, and more in them each time: ${formatBytesBriefly(keptBytes)} more`;
    case "doubles":
      return `keeps a block that is reallocated at a multiple of its size whenever it is full: ${formatBytesBriefly(keptBytes)} more`;
    default:
      return `keeps what it makes: ${formatBytesBriefly(keptBytes)} of the window live`;
  }
}
