/** The holder as the program's own code names it: "hub.watchers". */
import type { HolderJson, SuspectJson } from "../../model/documents/diagnosis_document.js";

const LONGEST_NAME = 60;
/** The step from a function with functools.lru_cache to the dict of its results. */
export const LRU_CACHE = /^field of functools\._lru_cache_wrapper$/;

/** A field of a library's own object: what follows is how it stores a table or an array. */
const OF_LIBRARY = /^field of (?:pandas|numpy|polars|pyarrow|scipy|torch)\./;
const PRIVATE = /^\._/;

/** The path up to the object that the program knows: `h → .frame`, without ._mgr, the block and the array of a DataFrame. */
export function outsideLibrary(path: readonly string[]): readonly string[] {
  const inside = path.findIndex((step) => OF_LIBRARY.test(step));
  const cut = inside > 0 && PRIVATE.test(path[inside - 1] ?? "") ? inside - 1 : inside;
  return cut > 1 ? path.slice(0, cut) : path;
}

/** If the bytes counted for an object are a larger share of the memory, the library does not keep it for that object. */
const MOST_COUNTED = 0.1;
/** A holder that stands for several objects: links of a chain, parts that are alike. */
const SEVERAL = /× \d|^each of /;

/** Whether a library allocated the memory for one object that is no container, such as the connection of a database. */
export function isBehindOneObject(
  holder: HolderJson | null | undefined,
  { domain, liveBytes }: Pick<SuspectJson, "domain" | "liveBytes">,
): boolean {
  return (
    domain !== "python" &&
    holder?.entries === 0 &&
    holder.retainedBytes < MOST_COUNTED * liveBytes &&
    !holder.path.some((step) => SEVERAL.test(step))
  );
}

/**
 * An expression for the end of a holder path: `module app → Bus → .subs → dict["changed"]` is
 * `app.Bus.subs["changed"]`. null if the path has no such end, or the expression is long.
 */
export function nameOf({ path }: Pick<HolderJson, "path">): string | null {
  let name: string | null = null;
  for (const step of outsideLibrary(path)) {
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
