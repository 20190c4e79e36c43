import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatShare,
  formatSlopeBriefly,
} from "../../model/base/numbers.js";
import { SHORTEST_WINDOW_MS } from "../series/growth.js";
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

/** A site keeps what it allocates: live blocks of every age, or live bytes that rise during the whole window. */
export const ageCohorts: Rule = {
  name: "age-cohorts",
  judge({ suspects, sites, evidence, total, windowMs }) {
    if (!evidence.sites) {
      return null;
    }
    const [first] = suspects;
    if (!first) {
      const [largest] = sites;
      return largest
        ? silent(
            `No site keeps what it allocates. The largest site, ${frameText(headlineOf(largest.site))}, has ${formatBytesBriefly(largest.keptBytes)} from this window live, ${
              {
                fills: "most of it allocated within a short part of the window",
                churns: "all of it allocated recently",
                small: "too little to be significant",
                hints: "in too few samples to be significant",
                swells: "in a few blocks, but private memory does not grow with it",
                doubles: "in one block that is not filled",
                keeps: "",
                accumulates: "",
              }[largest.course]
            }.`,
          )
        : silent("No sampled allocation made during this window is still live.");
    }
    const kept = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const all = growthShown(total, kept);
    const ofPlace = suspects.reduce(
      (sum, { site, slope }) => sum + (site.place === first.site.place ? slope : 0),
      0,
    );
    const rate =
      windowMs < SHORTEST_WINDOW_MS
        ? ""
        : `, ${formatSlopeBriefly(ofPlace)}, ${formatShare(ofPlace / all)} of the growth`;
    return {
      says: "leak",
      kind: "python-leak",
      weight: WEIGHTS[first.course] ?? 0.7,
      detail: `${frameText(headlineOf(first.site))} ${courseText(first)}${rate}.`,
      suspects,
    };
  },
};

function courseText({ course, keptBytes, backlog }: SiteJudgement): string {
  switch (course) {
    case "accumulates":
      return backlog
        ? `allocates items that wait in a queue: ${formatSlopeBriefly(backlog.producedSlope)} in, ${formatSlopeBriefly(backlog.consumedSlope)} freed; the oldest has waited ${formatDurationBriefly(backlog.waitingMs)}, and the wait keeps growing`
        : `has a rising number of live bytes: ${formatBytesBriefly(keptBytes)} more since the first third of the window`;
    case "swells":
      return `replaces a few large blocks with larger ones: ${formatBytesBriefly(keptBytes)} more`;
    case "doubles":
      return `keeps a block that is reallocated at a multiple of its size each time it is full: ${formatBytesBriefly(keptBytes)} more`;
    default:
      return `keeps what it allocates: ${formatBytesBriefly(keptBytes)} from this window are live`;
  }
}
