/**
 * Who holds what a suspect site keeps, in words: what its own samples hang on; else what other memory of the
 * same function hangs on (a connection's buffers are native, the object that leads to them is Python's);
 * else, where handles or mappings leak, what holds most of the program's objects for them.
 */
import type { HolderJson, VerdictKind } from "../model/diagnosis_document.js";
import type { Pid } from "../model/units.js";
import type { Observations } from "./observations.js";
import type { SiteJudgement } from "./suspects.js";

/** Stands for the sites of a process's open files, sockets, mappings and threads: each is too small an object
 * for a sample, so they are looked up by their types. */
export function handlesSite(pid: Pid): string {
  return `${pid} handles`;
}

const OF_HANDLES: ReadonlySet<VerdictKind> = new Set(["handle-leak", "file-growth", "shm-growth"]);

/** null where nothing was found to hold it. */
export function namedHolder(
  observations: Observations,
  { site }: SiteJudgement,
  kind: VerdictKind,
): HolderJson | null {
  const { holders = [], sites } = observations.evidence;
  const own = holders.find((holder) => holder.site === site.key);
  if (own?.holder || (own && own.garbage > 0)) {
    return own.holder;
  }
  const related = sites?.sites.filter(
    ({ pid, place, key }) => pid === site.pid && place === site.place && key !== site.key,
  );
  const keys = new Set(related?.map(({ key }) => key));
  if (OF_HANDLES.has(kind)) {
    keys.add(handlesSite(site.pid));
  }
  return holders.find((other) => other.holder !== null && keys.has(other.site))?.holder ?? null;
}
