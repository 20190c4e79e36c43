/** The holder as the program's own code names it: "hub.watchers". */
import type { HolderJson } from "../../model/documents/diagnosis_document.js";

const LONGEST_NAME = 60;
/** The step from a function with functools.lru_cache to the dict of its results. */
export const LRU_CACHE = /^field of functools\._lru_cache_wrapper$/;

/**
 * An expression for the end of a holder path: `module app → Bus → .subs → dict["changed"]` is
 * `app.Bus.subs["changed"]`. null if the path has no such end, or the expression is long.
 */
export function nameOf({ path }: Pick<HolderJson, "path">): string | null {
  let name: string | null = null;
  for (const step of path) {
    name = longer(name, step);
  }
  return !name || name.endsWith(".") || name.length > LONGEST_NAME ? null : name;
}

/** null after a step that no expression reaches; a variable of a frame or module begins a new one. */
function longer(name: string | null, step: string): string | null {
  const [, module] = /^module ([\w.]+)$/.exec(step) ?? [];
  if (module !== undefined) {
    return module === "__main__" ? "" : `${module}.`;
  }
  const [, local] = /^local (\w+)$/.exec(step) ?? [];
  if (local !== undefined) {
    return local;
  }
  if (name === null) {
    return null;
  }
  // The dict of functools.lru_cache: the function is what the program names.
  if (LRU_CACHE.test(step)) {
    return name;
  }
  if (name === "" && step === "__dict__") {
    return "globals()";
  }
  const isStart = name === "" || name.endsWith(".");
  if (/^[A-Za-z_]\w*$/.test(step)) {
    return isStart ? name + step : null;
  }
  const [, item] = /^[\w.]*(\[.+\])$/.exec(step) ?? [];
  const part = item ?? (/^(?:\.\w+)+$/.test(step) ? step : null);
  return isStart || part === null ? null : name + part;
}
