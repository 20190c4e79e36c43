/**
 * The holder of a suspect site's memory: the holder of its own samples; otherwise the holder of other memory of
 * the same function (a connection's buffers are native, but its object is Python's); otherwise, if handles or
 * mappings leak, the holder of most of the program's objects for them.
 */

import type { Pid } from "../../model/base/units.js";
import type { HolderJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import { handlesSite } from "../../model/profile/lookup_sites.js";
import type { Evidence, HolderEvidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import type { SiteHistory } from "../sites/site_history.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { siteOfType } from "../sites/type_site.js";

/**
 * All objects of the most numerous type, or descriptors without an object, with the stack that creates them if
 * known.
 */
export function handleSuspect(
  { evidence }: Observations,
  kind: VerdictKind,
  slope: number,
): SiteJudgement | null {
  const { pid } = evidence.target;
  const found = OF_HANDLES.has(kind) ? handlesOf(evidence) : undefined;
  if (!found || (found.holder === null && found.madeAt.length === 0)) {
    return null;
  }
  const type = found.site.slice(handlesSite(pid, "").length);
  const site = siteOfType(found.site, pid, type, [found.looked], found.madeAt);
  return { site, course: "hints", keptBytes: 0, slope };
}

/** The holder of a process's handles; the target's if no other process is given. */
export function handlesOf(
  { holders, target }: Evidence,
  pid: Pid = target.pid,
): HolderEvidence | undefined {
  return holders?.find(({ site }) => site.startsWith(handlesSite(pid, "")));
}

const OF_HANDLES: ReadonlySet<VerdictKind> = new Set(["handle-leak", "file-growth", "shm-growth"]);

/** null if no holder was found. */
export function namedHolder(
  observations: Observations,
  site: SiteHistory,
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
  const ofSame = holders.find((other) => other.holder !== null && keys.has(other.site));
  const handles = OF_HANDLES.has(kind) ? handlesOf(observations.evidence, site.pid) : undefined;
  // Code that maps files may also keep other memory, so the holder of the mappings is checked first.
  const found = site.domain === "files" ? (handles ?? ofSame) : (ofSame ?? handles);
  return found?.holder ?? null;
}
