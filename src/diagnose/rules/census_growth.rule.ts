import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatExactCount,
  formatSlopeBriefly,
} from "../../model/base/numbers.js";
import { holderPathText } from "../../model/documents/holder_path.js";
import type { Evidence } from "../evidence/evidence.js";
import { moreObjects } from "../evidence/object_growth.js";
import type { Observations } from "../evidence/observations.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Finding, type Rule, silent } from "./rule.js";

const MOST_NAMED = 3;

/** The number of objects of some types only rises, according to censuses of the heap. */
export const censusGrowth: Rule = {
  name: "census-growth",
  judge(observations) {
    const { evidence, suspects } = observations;
    const { census } = evidence;
    if (!census) {
      return null;
    }
    if (evidence.sites) {
      return madeOf(evidence, suspects.length > 0);
    }
    const count = census.timesMs.length;
    const counted = count === 1 ? "1 census shows" : `${count} censuses show`;
    const types = suspects.filter(({ site }) => site.type !== undefined);
    const [first] = types;
    if (!first) {
      return silent(
        count < 2
          ? "Objects were counted once, which shows no growth."
          : `${counted} no type whose own bytes explain the growth.`,
      );
    }
    const detail = `${counted} growth: ${types
      .slice(0, MOST_NAMED)
      .map((type) => describeType(observations, type))
      .join("; ")}.`;
    return { says: "leak", kind: "python-leak", weight: 0.85, detail, suspects: types };
  },
};

/** In addition to the accused sites: the types of objects that grow. */
function madeOf(evidence: Evidence, sitesGrow: boolean): Finding | null {
  const more = moreObjects(evidence);
  if (more === null) {
    return null;
  }
  const types = more.types
    .slice(0, MOST_NAMED)
    .map(
      ({ type, addedBytes, addedObjects }) =>
        `${type} by ${formatBytesBriefly(addedBytes)}${addedObjects > 0 ? ` (${formatExactCount(addedObjects)} more)` : ""}`,
    )
    .join(", ");
  return {
    ...silent(
      `Two censuses ${formatDurationBriefly(more.toMs - more.fromMs)} apart show growth: ${types}.`,
    ),
    says: sitesGrow ? "leak" : "silent",
  };
}

/** "app.Session grows by 12 MiB/h to 40 MiB, 52,000 objects, in module app → sessions" */
function describeType(observations: Observations, suspect: SiteJudgement): string {
  const { site, slope } = suspect;
  const holder = observations.holderOf(suspect)?.holder;
  const objects = formatExactCount(site.liveObjects);
  return (
    `${site.type} grows by ${formatSlopeBriefly(slope)} to ${formatBytesBriefly(site.liveBytes.at(-1) ?? 0)}, ${objects} objects` +
    (holder ? `, in ${holderPathText(holder.path)}` : "")
  );
}
