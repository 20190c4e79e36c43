/** The rules that a command line or a setting selects. */
import { didYouMean } from "../../model/base/near_miss.js";
import { badUsage } from "../../model/errors/errors.js";
import { RULES } from "./index.js";
import type { Rule } from "./rule.js";

/** All rules without `ignore`, or `select` without `ignore`. */
export function chosenRules(settings: {
  readonly select?: readonly string[];
  readonly ignore?: readonly string[];
}): Set<Rule> {
  const chosen = new Set(settings.select === undefined ? RULES : rulesNamed(settings.select));
  for (const rule of rulesNamed(settings.ignore ?? [])) {
    chosen.delete(rule);
  }
  return chosen;
}

/** Rules by id ("TM-L012"), the beginning of ids ("TM-L01") or name. Throws TM-E002 for a word that names none. */
export function rulesNamed(words: readonly string[]): Rule[] {
  return words.flatMap((word) => {
    const wanted = word.trim().toUpperCase();
    const found = RULES.filter(
      ({ id, name }) => id.startsWith(wanted) || name.toUpperCase() === wanted,
    );
    if (found.length === 0 || wanted === "") {
      const names = RULES.flatMap(({ id, name }) => [id, name]);
      throw badUsage(
        `there is no rule ${word}`,
        didYouMean(word, names) ||
          didYouMean(`TM-${wanted}`, names) ||
          "tidemark lint --rules lists them",
      );
    }
    return found;
  });
}
