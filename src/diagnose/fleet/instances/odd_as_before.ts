/**
 * Instances that leaked alone in the version before, and rise ahead of their siblings again. It takes a day to find one of them among
 * siblings, which would be lost at each deploy:
 *
 *   version         41                42
 *   odd one      ▁▂▃▄▅▆▇█          ▁▂▃▃▄         as far ahead at the same ages: leaks on
 *   siblings     ▁▁▁▁▁▁▁▁          ▁▁▁▁▁
 */
import type { Millis } from "../../../model/base/units.js";
import { smallestRise } from "../../series/growth.js";
import type { Unloaded } from "../curves/load_removal.js";
import { groupGrowth, type Judging } from "../growth/group_growth.js";
import { areMostLivesAhead, FEWEST_SIBLINGS, lengthOf } from "./ahead_of_siblings.js";
import type { OddInstance } from "./odd_instances.js";

/** A shorter life shows nothing; nor do siblings that lived for less than this share of it. */
const LEAST_LIFE_MS: Millis = 8 * 3_600_000;
const LEAST_COMPARED = 0.8;

/** `before`: of the version before; `processes`: all of this one. */
export function oddAsBefore(
  processes: readonly Unloaded[],
  before: readonly OddInstance[],
  judging: Judging,
): readonly OddInstance[] {
  return before.flatMap(({ instance, growth: then }) => {
    const own = processes.filter(({ process }) => process.instance === instance);
    const siblings = processes.filter(({ process }) => process.instance !== instance);
    const longest = Math.max(0, ...own.map(lengthOf));
    const compared = siblings.filter((each) => lengthOf(each) >= LEAST_COMPARED * longest);
    if (longest < LEAST_LIFE_MS || compared.length < FEWEST_SIBLINGS - 1) {
      return [];
    }
    const growth = areMostLivesAhead(own, siblings, then.rate)
      ? groupGrowth(own, { ...judging, isLoadKnown: true, loadBytes: 0 })
      : null;
    if (growth === null || growth.straight.low <= 0) {
      return [];
    }
    const { rate, low, high } = growth.straight;
    return rate * longest < smallestRise(longest, growth.level)
      ? []
      : [
          {
            instance,
            growth: { ...growth, rate, low, high, isFatal: false, shape: "leaking" },
            processes: own,
          },
        ];
  });
}
