/**
 * Types whose objects grow in number and hold memory that a library allocates without malloc. Their own bytes
 * are negligible, and the memory behind them is not sampled. They were found by type and counted at each lookup
 * (src/holders/library_objects.ts); unexplained growth is divided among them in proportion to their increase.
 */

import type { FrameJson } from "../../model/documents/documents.js";
import { librarySite } from "../../model/profile/lookup_sites.js";
import type { CensusEvidence, HolderEvidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import { isSamePlace } from "../evidence/short_path.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { siteOfType } from "../sites/type_site.js";
import { keptMeanwhile } from "./rarely_sampled_sites.js";

/** Least increase from the first count to the last, in objects and as a share of the last. */
const FEWEST_MORE = 8;
const LEAST_MORE = 0.1;
/** Share of the objects that were looked up. */
const LEAST_HELD = 0.5;

/** Sorted by increase. `unseenSlope`: growth of memory at no known site, in bytes per ms. */
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

/**
 * The stack whose samples are in them; otherwise a site that keeps a little memory in the same place, or the
 * only one that does. Leaf first.
 */
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

/** From the first census that includes it; earlier ones did not count it. */
function countsOf(census: CensusEvidence | undefined, type: string): readonly number[] {
  const objects = census?.types.find((course) => course.type === type)?.objects ?? [];
  const first = objects.findIndex((count) => count > 0);
  return first < 0 ? [] : objects.slice(first);
}
