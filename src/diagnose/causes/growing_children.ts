/** The child processes that grow, and how many ran long enough to be judged. */
import type { Millis } from "../../model/base/units.js";
import type { Observations, ProcessObservation } from "../evidence/observations.js";
import { isFirm } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";

/** A worker stands out if it grows this many times faster than the next one. */
const STANDS_OUT = 3;
const FEWEST_SIBLINGS = 3;
/** Share of the growth of the tree. */
const MOST_OF_GROWTH = 0.6;
/** Workers that end with the program are noticed so much earlier. */
const LONGEST_END_MS: Millis = 2_000;

export interface GrowingChildren {
  /** Number of child processes that ran long enough to be judged. */
  readonly judged: number;
  /** The fastest first. */
  readonly growing: readonly ProcessObservation[];
  /** Whether all that grew ended well before the window does, while the program went on. */
  readonly haveEnded: boolean;
  /** Suspects in child processes. */
  readonly suspects: readonly SiteJudgement[];
  /** The one of at least three that grows by far the most; null if there is none. */
  readonly odd: ProcessObservation | null;
}

export function growingChildren({
  processes,
  suspects,
  evidence,
  total,
}: Pick<Observations, "processes" | "suspects" | "evidence" | "total">): GrowingChildren {
  const children = processes.filter(({ isTarget }) => !isTarget);
  const inChildren = suspects.filter(({ site }) => site.pid !== evidence.target.pid);
  const alone = children.filter(
    (child) =>
      child.grows("anonRssBytes") || inChildren.some(({ site }) => site.pid === pidOf(child)),
  );
  const growing = (alone.length > 0 ? alone : growingTogether(children, total)).sort(
    (a, b) => slopeOf(b) - slopeOf(a),
  );
  const [first, second] = growing;
  const standsOut =
    first !== undefined &&
    children.length >= FEWEST_SIBLINGS &&
    slopeOf(first) > STANDS_OUT * (second ? slopeOf(second) : 0);
  return {
    judged: children.length,
    growing,
    haveEnded: growing.every(
      ({ process: { endedMs } }) =>
        endedMs !== null && endedMs < evidence.window.endMs - LONGEST_END_MS,
    ),
    suspects: inChildren,
    odd: standsOut ? first : null,
  };
}

/** Workers that each rise too little to count, but together make most of the growth of the tree, which counts. */
function growingTogether(
  children: readonly ProcessObservation[],
  total: Observations["total"],
): ProcessObservation[] {
  const rising = children.filter((child) => child.growth("anonRssBytes").low > 0);
  const together = rising.reduce((sum, child) => sum + slopeOf(child), 0);
  return isFirm(total) && together >= MOST_OF_GROWTH * total.slope ? rising : [];
}

/**
 * "Child process 43 grows", "One of 4 child processes grows, process 43", "2 of 4 child processes grow", "All 3 child processes
 * grew until they ended": of those that ran long enough to be judged.
 */
export function whichChildrenGrow({ judged, growing, haveEnded, odd }: GrowingChildren): string {
  const grows = haveEnded ? "grew until it ended" : "grows";
  const grow = haveEnded ? "grew until they ended" : "grow";
  const [first] = growing;
  const name = first === undefined ? "" : ` ${pidOf(first)}`;
  if (judged <= 1) {
    return `Child process${name} ${grows}`;
  }
  if (growing.length === 1) {
    return `One of ${judged} child processes ${grows}, process${name}`;
  }
  const many =
    growing.length === judged
      ? `${judged === 2 ? "Both" : `All ${judged}`} child processes ${grow}`
      : `${growing.length} of ${judged} child processes ${grow}`;
  return odd === null ? many : `${many}, process ${pidOf(odd)} by far the fastest`;
}

const pidOf = ({ process }: ProcessObservation) => process.pid;
const slopeOf = (child: ProcessObservation) => child.growth("anonRssBytes").slope;
