/**
 * Types whose objects become more and hold memory that a library takes past malloc: their own bytes are next to
 * nothing, and no sample falls on what hangs on them. They were looked up by their type, and counted each time
 * (src/holders/library_objects.ts): what they became more by is what divides the growth that nobody sees.
 */

import type { FrameJson } from "../../model/documents/documents.js";
import { librarySite } from "../../model/profile/lookup_sites.js";
import type { CensusEvidence, HolderEvidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import { isSamePlace } from "../evidence/short_path.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { siteOfType } from "../sites/type_site.js";
import { keptMeanwhile } from "./rarely_sampled_sites.js";

/** From the first count to the last, in objects and as a share of the last. */
const FEWEST_MORE = 8;
const LEAST_MORE = 0.1;
/** Of those that were looked up. */
const LEAST_HELD = 0.5;

/** By what they became more by. `unseenSlope`: of the memory that no site tells of, by ms. */
export function libraryTypes(observations: Observations, unseenSlope: number): SiteJudgement[] {
  const { evidence } = observations;
  const { pid } = evidence.target;
  const prefix = librarySite(pid, "");
  const grown = (evidence.holders ?? []).flatMap((found) => {
    const type = found.site.startsWith(prefix) ? found.site.slice(prefix.length) : "";
    const counts = countsOf(evidence.census, type);
    const more = (counts.at(-1) ?? 0) - (counts[0] ?? 0);
    const isGrown = more >= Math.max(FEWEST_MORE, LEAST_MORE * (counts.at(-1) ?? 0));
    const isHeld = found.holder !== null && found.held >= LEAST_HELD * found.looked;
    return type !== "" && isGrown && isHeld && found.bound === null
      ? [{ found, type, counts, more }]
      : [];
  });
  const all = grown.reduce((sum, { more }) => sum + more, 0);
  const meanwhile = keptMeanwhile(observations, unseenSlope);
  return grown
    .sort((a, b) => b.more - a.more)
    .map(({ found, type, counts, more }) => ({
      site: siteOfType(found.site, pid, type, counts, makerOf(observations, found, meanwhile)),
      course: "hints",
      keptBytes: 0,
      slope: (more / all) * unseenSlope,
    }));
}

/** Whose samples lie in them; else what keeps a little beside them, in the same place or alone. Leaf first. */
function makerOf(
  { holderOf }: Observations,
  { madeAt, holder }: HolderEvidence,
  meanwhile: readonly SiteJudgement[],
): readonly FrameJson[] {
  const placeOf = (site: SiteJudgement) => holderOf(site)?.holder?.path;
  const beside = meanwhile.find((site) => isSamePlace(placeOf(site), holder?.path));
  const [first, second] = meanwhile;
  const alone =
    first !== undefined && second === undefined && placeOf(first) === undefined ? first : null;
  return madeAt.length > 0 ? madeAt : ((beside ?? alone)?.site.keptStacks[0]?.frames ?? []);
}

/** From the first census that has it on: those before it did not ask for it. */
function countsOf(census: CensusEvidence | undefined, type: string): readonly number[] {
  const objects = census?.types.find((course) => course.type === type)?.objects ?? [];
  const first = objects.findIndex((count) => count > 0);
  return first < 0 ? [] : objects.slice(first);
}
