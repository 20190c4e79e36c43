import { isFromArguments, isTypeLike } from "../flow/registration.js";
import type { Scope } from "../scopes/scope.js";
import { isInside, within } from "../syntax/expressions.js";
import { code, gains, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const closureContainerGrows: Rule = {
  id: "TM-L004",
  name: "closure-container-grows",
  severity: "warning",
  finds:
    "A local container that an inner function adds to after the outer function has returned it, and that nothing is removed from: a cache in a decorator, a list in a callback.",
  why: "The inner function keeps the container alive, and each of its calls adds to it.",
  speed: "One entry for each call, or for each new combination of arguments.",
  before: `
def memoize(function):
    results = {}

    def wrapper(*args):
        if args not in results:
            results[args] = function(*args)
        return results[args]

    return wrapper
`,
  after: `
from functools import lru_cache

def memoize(function):
    return lru_cache(maxsize=1024)(function)
`,
  ignore:
    "The inner function is called with only a few different arguments, or lives no longer than one task.",
  proof: "`tidemark heap PID --to dict` shows the path `function > closure > cell > dict`.",
  *check(file) {
    for (const outer of file.module.functions) {
      if (outer.inner.length === 0) {
        continue;
      }
      for (const growth of file.containers.all(outer)) {
        if (!onlyGrows(growth)) {
          continue;
        }
        const use = growth.grows.find(
          ({ scope, key, value, by }) =>
            scope.functionAround !== outer &&
            by !== "[]+=" &&
            !isTypeLike(key) &&
            isHandedOut(scope.functionAround, outer) &&
            isFromArguments(key ?? value, scope.functionAround, 0),
        );
        if (use !== undefined) {
          yield {
            node: use.at,
            message: `${code(growth.slot.name)} of ${code(outer.name)} ${gains(growth)} in each call of ${code(use.scope.functionAround?.name ?? "the inner function")}, which keeps it alive; nothing removes any`,
          };
        }
      }
    }
  },
};

/** Whether the function returns the inner one. */
function isHandedOut(inner: Scope | null, outer: Scope): boolean {
  const body = outer.node.child("body");
  if (body === null || inner === null) {
    return false;
  }
  // Of functions in functions, the outermost is what is returned: decorators with arguments.
  for (let above = inner.parent; above !== null && above !== outer; above = above.parent) {
    if (above.kind === "function" && above.parent === outer) {
      return isHandedOut(above, outer);
    }
  }
  const returns = [...within(body, "return_statement", { here: true })];
  return returns.some((statement) =>
    inner.name === ""
      ? isInside(inner.node, statement)
      : new RegExp(`\\b${inner.name}\\b`).test(statement.text),
  );
}
