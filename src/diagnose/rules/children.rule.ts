import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { ProcessObservation } from "../evidence/observations.js";
import { type Rule, silent } from "./rule.js";

/** Share of the suspects' growth that must be in child processes. */
const MOST_IN_CHILDREN = 0.6;

/** A worker stands out if it grows this many times faster than the next one. */
const STANDS_OUT = 3;
const FEWEST_SIBLINGS = 3;

/** The worker that grows by far the most of several. */
function oddOne(growing: readonly ProcessObservation[], workers: number): string {
  const slopeOf = (worker: ProcessObservation) => worker.growth("anonRssBytes").slope;
  const [first, second] = [...growing].sort((a, b) => slopeOf(b) - slopeOf(a));
  return first !== undefined &&
    workers >= FEWEST_SIBLINGS &&
    slopeOf(first) > STANDS_OUT * (second ? slopeOf(second) : 0)
    ? ` Process ${first.process.pid} stands out: it alone grows by ${formatSlopeBriefly(slopeOf(first))}.`
    : "";
}

/** Counts only child processes that ran long enough to be judged. */
function subject(growing: number, workers: number): string {
  if (workers === 1) {
    return "The child process grows";
  }
  return growing === 1
    ? `One of ${workers} child processes that ran long enough grows`
    : `${growing} of ${workers} child processes that ran long enough grow`;
}

/** The growing memory belongs to a worker process, not to the target itself. */
export const children: Rule = {
  name: "children",
  judge({ processes, suspects, evidence }) {
    const workers = processes.filter(({ isTarget }) => !isTarget);
    if (workers.length === 0) {
      return null;
    }
    const inChildren = suspects.filter(({ site }) => site.pid !== evidence.target.pid);
    const all = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const slope = inChildren.reduce((sum, suspect) => sum + suspect.slope, 0);
    const growing = workers.filter(
      (worker) =>
        worker.grows("anonRssBytes") || inChildren.some((s) => s.site.pid === worker.process.pid),
    );
    if (growing.length === 0 || (all > 0 && slope < MOST_IN_CHILDREN * all)) {
      return silent(
        workers.length === 1
          ? "The child process does not grow."
          : `The ${workers.length} child processes do not grow.`,
      );
    }
    const own = growing.reduce(
      (sum, worker) => sum + Math.max(0, worker.growth("anonRssBytes").slope),
      0,
    );
    const level = growing.reduce((sum, worker) => sum + worker.growth("rssBytes").level, 0);
    return {
      says: "leak",
      kind: "child-growth",
      weight: inChildren.length > 0 ? 0.95 : 0.8,
      detail: `${subject(growing.length, workers.length)} by ${formatSlopeBriefly(Math.max(slope, own))}${growing.length > 1 ? " together" : ""}, to ${formatBytesBriefly(level)}.${oddOne(growing, workers.length)}`,
      suspects: inChildren,
      explainedSlope: Math.max(slope, own),
    };
  },
};
