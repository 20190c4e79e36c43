import { cacheOf } from "./caches.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const cachedAsync: Rule = {
  id: "TM-L008",
  name: "cached-async",
  severity: "error",
  finds:
    "A cache on an `async def`: `functools` caches the coroutine, which can be awaited only once; an async cache without a limit, or on a method, keeps every result and every instance.",
  why: "Finished coroutines, their results and the arguments stay in the cache.",
  speed: "One coroutine or result for each combination of arguments.",
  before: `
from functools import lru_cache

@lru_cache
async def load_user(user_id):
    return await database.fetch(user_id)
`,
  after: `
from async_lru import alru_cache

@alru_cache(maxsize=1024, ttl=60)
async def load_user(user_id):
    return await database.fetch(user_id)
`,
  ignore: "The function has no arguments, so there is only one entry.",
  proof: "`tidemark heap PID` counts `coroutine` objects, and `--to coroutine` shows the cache.",
  *check(file) {
    for (const scope of file.module.functions) {
      const cache = scope.isAsync ? cacheOf(scope, file) : null;
      const isMethod = scope.methodOf !== null && !scope.isStatic;
      const isKeyless = scope.parameters.length === 0;
      if (cache === null) {
        continue;
      }
      const isOfFunctools = /^functools\./.test(cache.name);
      if (isOfFunctools) {
        yield {
          node: cache.node,
          message: `${code(cache.name)} on the async function ${code(scope.name)} keeps coroutines, which can be awaited only once`,
        };
      } else if (isMethod && !cache.node.text.includes("key")) {
        yield {
          node: cache.node,
          severity: cache.isBounded ? "warning" : "error",
          message: `${code(cache.name)} keeps every instance of ${code(scope.methodOf?.name ?? "")} on which ${code(scope.name)} is called`,
        };
      } else if (
        !cache.isBounded &&
        !isKeyless &&
        /alru_cache|async_lru|async_cache|acached/.test(cache.name)
      ) {
        yield {
          node: cache.node,
          message: `${code(cache.name)} keeps every result of ${code(scope.name)}: it has no limit`,
        };
      }
    }
  },
};
