import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import { growingChildren, whichChildrenGrow } from "../causes/growing_children.js";
import { type Rule, silent } from "./rule.js";

/** Share of the suspects' growth that must be in child processes. */
const MOST_IN_CHILDREN = 0.6;

/** The growing memory belongs to a worker process, not to the target itself. */
export const children: Rule = {
  name: "children",
  judge(observations) {
    const found = growingChildren(observations);
    const { judged, growing, suspects: inChildren, odd } = found;
    if (judged === 0) {
      return null;
    }
    const all = observations.suspects.reduce((sum, { slope }) => sum + slope, 0);
    const slope = inChildren.reduce((sum, suspect) => sum + suspect.slope, 0);
    if (growing.length === 0 || (all > 0 && slope < MOST_IN_CHILDREN * all)) {
      return silent(
        judged === 1
          ? "The child process does not grow."
          : `The ${judged} child processes do not grow.`,
      );
    }
    const own = growing.reduce(
      (sum, child) => sum + Math.max(0, child.growth("anonRssBytes").slope),
      0,
    );
    const level = growing.reduce((sum, child) => sum + child.growth("rssBytes").level, 0);
    // Beside a level of RSS, the rate is that of RSS, where it can be told.
    const rate = formatSlopeBriefly(own > 0 ? own : slope);
    const together = growing.length > 1 ? "together by " : "by ";
    const ofOdd =
      odd === null || growing.length === 1
        ? ""
        : ` Process ${odd.process.pid} alone grows by ${formatSlopeBriefly(odd.growth("anonRssBytes").slope)}.`;
    return {
      says: "leak",
      kind: "child-growth",
      weight: inChildren.length > 0 ? 0.95 : 0.8,
      detail: `${whichChildrenGrow(found)}${judged === 1 ? "" : ","} ${together}${rate}, to ${formatBytesBriefly(level)} of RSS.${ofOdd}`,
      suspects: inChildren,
      explainedSlope: Math.max(slope, own),
    };
  },
};
