import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatShare,
  formatSlopeBriefly,
} from "../../model/base/numbers.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import { sitesExceed } from "../causes/exceeding_sites.js";
import { isAttached, type Observations } from "../evidence/observations.js";
import { isFirm, SHORTEST_WINDOW_MS } from "../series/growth.js";
import { growthShown, memoryName } from "../series/total_growth.js";
import { headlineOf } from "../sites/headline_frame.js";
import {
  keptSpanMs,
  type SiteCourse,
  type SiteJudgement,
  SMALLEST_KEPT_BYTES,
} from "../sites/suspects.js";
import { frameText } from "../wording/words.js";
import { type Finding, type Rule, silent } from "./rule.js";

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
  judge(observations) {
    const { suspects, evidence, total, windowMs } = observations;
    if (!evidence.sites) {
      return null;
    }
    const [first] = suspects;
    if (!first) {
      return nothingKept(observations);
    }
    const kept = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const all = growthShown(total, kept);
    const same = suspects.filter(({ site }) => site.place === first.site.place);
    const ofPlace = same.reduce((sum, { slope }) => sum + slope, 0);
    const keptBytes = same.reduce((sum, suspect) => sum + suspect.keptBytes, 0);
    const exceeds = sitesExceed(observations);
    const measured = isFirm(total) || total.shape === "short";
    const base = exceeds || !measured ? "what all sites keep" : "the growth";
    const rate =
      windowMs < SHORTEST_WINDOW_MS
        ? ""
        : `${first.backlog ? "; the queue grows by " : ", "}${formatSlopeBriefly(ofPlace)}, ${formatShare(ofPlace / all)} of ${base}`;
    return {
      says: "leak",
      kind: "python-leak",
      weight: WEIGHTS[first.course] ?? 0.7,
      detail: `${frameText(headlineOf(first.site))} ${courseText({ ...first, keptBytes }, windowMs)}${rate}.${exceeds ? excess(observations) : ""}`,
      suspects,
    };
  },
};

/** Why sites keep more than the program grows: their older memory is freed unseen, or their blocks are not all resident. */
function excess({ evidence, total }: Observations): string {
  const why = isAttached(evidence)
    ? "memory allocated before the recording is freed meanwhile, or part of the blocks is reserved but not written yet"
    : "part of the blocks is reserved but not written yet, or other memory is freed";
  return ` ${memoryName(total)} grows by only ${formatSlopeBriefly(total.slope)}: ${why}.`;
}

/** Why the largest site is not accused. */
const HARMLESS: Record<SiteCourse, string> = {
  fills: "most of it allocated within a short part of the window",
  churns: "all of it allocated recently",
  small: "too little to be significant",
  hints: "in too few samples to be significant",
  swells: "in a few blocks, but private memory does not grow with it",
  doubles: "in one block that is not filled",
  keeps: "in a container with a bound",
  accumulates: "in a container with a bound",
};

function nothingKept({ sites, bounded, windowMs }: Observations): Finding {
  const [largest] = sites;
  if (!largest) {
    return silent("No sampled allocation made during this window is still live.");
  }
  if (largest.keptBytes === 0) {
    return silent(
      `No sampled allocation made in the last ${formatDurationBriefly(keptSpanMs(windowMs))} is still live.`,
    );
  }
  const where = frameText(headlineOf(largest.site));
  if (bounded.some(({ suspect }) => suspect === largest)) {
    return silent(
      `Only containers with a bound keep what is allocated: ${where} has ${keptText(largest.keptBytes, windowMs)} live.`,
    );
  }
  const isFew = largest.course === "small" && largest.keptBytes >= SMALLEST_KEPT_BYTES;
  const why = HARMLESS[isFew ? "hints" : largest.course];
  const none = isFew || largest.course === "small" ? "No site certainly keeps" : "No site keeps";
  return silent(
    `${none} what it allocates. The largest site, ${where}, has ${keptText(largest.keptBytes, windowMs)} live, ${why}.`,
  );
}

/** "12 MiB allocated in the last 40 s": figures of kept bytes leave out the first third of the window. */
function keptText(bytes: Bytes, windowMs: Millis): string {
  return `${formatBytesBriefly(bytes)} allocated in the last ${formatDurationBriefly(keptSpanMs(windowMs))}`;
}

function courseText({ course, keptBytes, backlog }: SiteJudgement, windowMs: Millis): string {
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
      return `keeps what it allocates: ${keptText(keptBytes, windowMs)} are live`;
  }
}
