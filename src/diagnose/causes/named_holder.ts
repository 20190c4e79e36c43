/**
 * Who holds what a suspect site keeps, in words: what its own samples hang on; else what other memory of the
 * same function hangs on (a connection's buffers are native, the object that leads to them is Python's);
 * else, where handles or mappings leak, what holds most of the program's objects for them.
 */

import type { Pid } from "../../model/base/units.js";
import type { HolderJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import { handlesSite } from "../../model/profile/lookup_sites.js";
import type { Evidence, HolderEvidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { siteOfType } from "../sites/type_site.js";

/** All objects of the type that there is most of, or descriptors that no object stands for, with the stack that
 * makes them where that is known. */
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

/** What holds the handles of a process; the target's where no other is named. */
export function handlesOf(
  { holders, target }: Evidence,
  pid: Pid = target.pid,
): HolderEvidence | undefined {
  return holders?.find(({ site }) => site.startsWith(handlesSite(pid, "")));
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
  const ofSame = holders.find((other) => other.holder !== null && keys.has(other.site));
  const handles = OF_HANDLES.has(kind) ? handlesOf(observations.evidence, site.pid) : undefined;
  // Code that maps files may keep other memory, too: what holds the mappings is asked first.
  const found = site.domain === "files" ? (handles ?? ofSame) : (ofSame ?? handles);
  return found?.holder ?? null;
}
