import { containerOf } from "../scopes/containers.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const mutableDefault: Rule = {
  id: "TM-L010",
  name: "mutable-default-grows",
  severity: "error",
  finds: "A default argument that is a list, dict or set, and that the function adds to.",
  why: "The default is created once, with the function, and all calls share it.",
  speed: "Each call without the argument adds its items.",
  before: `
def collect(item, items=[]):
    items.append(item)
    return items
`,
  after: `
def collect(item, items=None):
    items = [] if items is None else items
    items.append(item)
    return items
`,
  ignore: "It is intended as a cache, and has only a few keys.",
  proof: "`tidemark heap PID --to list` shows the path `function > __defaults__ > list`.",
  *check(file) {
    for (const scope of file.module.functions) {
      for (const { name, fallback } of scope.parameters) {
        const container = fallback === null ? null : containerOf(fallback, file.names);
        if (container === null || container.isBounded || fallback === null) {
          continue;
        }
        const growth = file.containers.of(file.slots.slot(scope, name));
        const isReplaced = (scope.writes.get(name) ?? []).some(({ kind }) => kind === "assign");
        const use = growth?.grows[0] ?? growth?.elementGrows[0];
        if (use !== undefined && !isReplaced && growth?.shrinks.length === 0 && !growth.isChecked) {
          yield {
            node: use.at,
            message: `the default of ${code(name)} is shared by all calls of ${code(scope.name || "lambda")}, and each call adds to it`,
          };
        }
      }
    }
  },
};
