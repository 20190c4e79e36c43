import { formatExactCount } from "../../model/base/numbers.js";
import { libraryTypes } from "../causes/library_types.js";
import type { Rule } from "./rule.js";

/** If sites explain this share of RSS growth, they are the better suspects. */
const MOST_EXPLAINED = 0.5;
const MOST_NAMED = 3;

/** RSS grows by memory that a library allocates without malloc, and the number of that library's objects rises. */
export const libraryObjects: Rule = {
  name: "library-objects",
  judge(observations) {
    const { target, suspects } = observations;
    const growth = target.growth("rssBytes");
    const explained = suspects.reduce((sum, { slope }) => sum + slope, 0);
    if (!target.grows("rssBytes") || explained >= MOST_EXPLAINED * growth.slope) {
      return null;
    }
    const types = libraryTypes(observations, growth.slope);
    if (types.length === 0) {
      return null;
    }
    const rises = types
      .slice(0, MOST_NAMED)
      .map(
        ({ site }) => `${site.type} from ${count(site.objects[0])} to ${count(site.liveObjects)}`,
      );
    const detail = `A library allocates the growing memory without malloc, and the number of its objects rises: ${rises.join(", ")}.`;
    return { says: "leak", kind: "python-leak", weight: 0.8, detail, suspects: types, growth };
  },
};

function count(objects = 0): string {
  return formatExactCount(objects);
}
