import { cacheOf } from "./caches.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const cachedMethod: Rule = {
  id: "TM-L007",
  name: "cached-method",
  severity: "warning",
  finds:
    "`functools.cache`, `lru_cache` or another cache of the module on a method: `self` is part of the key.",
  why: "The cache belongs to the class and keeps every instance whose method was called, with everything that the instance holds.",
  speed:
    "One instance for each object whose method is called: unbounded with `cache` and `maxsize=None`, otherwise up to `maxsize` instances.",
  before: `
from functools import lru_cache

class Document:
    @lru_cache(maxsize=None)
    def words(self):
        return self.text.split()
`,
  after: `
from functools import cached_property

class Document:
    @cached_property
    def words(self):
        return self.text.split()
`,
  ignore: "The class has one instance, or a few that live as long as the program.",
  proof:
    "`tidemark heap PID --to Document` shows the path `functools._lru_cache_wrapper > Document`.",
  *check(file) {
    for (const scope of file.module.functions) {
      const owner = scope.methodOf;
      if (owner === null || scope.isAsync || scope.isStatic || scope.parameters.length === 0) {
        continue;
      }
      // What is called `cls` is a class, whatever makes the function a method of it.
      const isOfClass =
        scope.decorators.some(({ text }) => text === "classmethod") ||
        /^(?:cls|klass|mcs)$/.test(scope.parameters[0]?.name ?? "");
      const cache = cacheOf(scope, file);
      const isFew = file.names
        .baseNames(owner)
        .some((base) =>
          /(?:^|\.)(?:Enum|IntEnum|StrEnum|Flag|IntFlag|type|ABCMeta|EnumMeta|BaseSettings|NamedTuple|tuple|str|int)$/.test(
            base,
          ),
        );
      if (
        cache === null ||
        isOfClass ||
        isFew ||
        /cachedmethod$/.test(cache.name) ||
        scope.name === "__new__"
      ) {
        continue;
      }
      yield {
        node: cache.node,
        severity: cache.isBounded ? "warning" : "error",
        message: `${code(cache.name)} keeps every instance of ${code(owner.name)} on which ${code(scope.name)} is called${cache.isBounded ? ", up to its size" : ", without a limit"}`,
      };
    }
  },
};
