import { formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import { isMostlyGarbage } from "../evidence/observations.js";
import { type Rule, silent } from "./rule.js";

/** Share of what suspects keep. */
const MOST_GARBAGE = 0.5;
/**
 * Above this share, reachable objects cannot explain the growth, whatever the collector's settings are
 * (gc.freeze() also hides objects from it).
 */
const NEARLY_ALL = 0.8;

/** Unreachable cycles accumulate because the garbage collector does not run. */
export const garbageCycles: Rule = {
  name: "garbage-cycles",
  judge(observations) {
    const { suspects, evidence } = observations;
    const looked = suspects.flatMap((suspect) => {
      const found = observations.holderOf(suspect);
      return found && found.looked > 0 ? [{ suspect, found }] : [];
    });
    const collector = evidence.collectors?.find(({ pid }) => pid === evidence.target.pid);
    const starved =
      collector !== undefined &&
      (!collector.enabled ||
        collector.youngThreshold === 0 ||
        collector.youngThreshold > STARVING_THRESHOLD);
    const garbage = looked.filter(({ found }) => isMostlyGarbage(found));
    const slope = garbage.reduce((sum, { suspect }) => sum + suspect.slope, 0);
    const all = suspects.reduce((sum, suspect) => sum + suspect.slope, 0);
    if (garbage.length === 0 || slope < MOST_GARBAGE * all) {
      if (looked.length === 0) {
        return null;
      }
      return silent(
        starved
          ? "The garbage collector is off or rarely runs, but the growing objects are reachable."
          : "The growing objects are reachable, so they are not garbage.",
      );
    }
    const why = starved
      ? collector?.enabled
        ? `its threshold is ${collector.youngThreshold}`
        : "it is switched off"
      : "it has not collected them (gc.freeze() has this effect)";
    return {
      says: "leak",
      kind: "cycle-garbage",
      weight: starved ? 0.98 : slope >= NEARLY_ALL * all ? 0.93 : 0.85,
      detail: `${formatShare(slope / all)} of what sites keep (${formatSlopeBriefly(slope)}) is in unreachable reference cycles: only the garbage collector can free it, and ${why}.`,
      suspects: garbage.map(({ suspect }) => suspect),
    };
  },
};

/** The default is 700 (2000 from 3.13 on). */
const STARVING_THRESHOLD = 100_000;
