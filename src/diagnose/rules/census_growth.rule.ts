import type { Observations } from "../observations.js";
import { type Rule, silent } from "../rule.js";
import type { SiteJudgement } from "../suspects.js";
import { bytesText, rateText } from "../words.js";

const MOST_TOLD = 3;

/** Objects of some types only ever become more, counted in the program's own heap. */
export const censusGrowth: Rule = {
  name: "census-growth",
  judge(observations) {
    const { evidence, suspects } = observations;
    const { census } = evidence;
    if (!census || evidence.sites) {
      return null;
    }
    const counted = `${census.timesMs.length} censuses`;
    const types = suspects.filter(({ site }) => site.type !== undefined);
    const [first] = types;
    if (!first) {
      return silent(`No type of object explains a growth, by ${counted}.`);
    }
    const detail = `By ${counted}: ${types
      .slice(0, MOST_TOLD)
      .map((type) => told(observations, type))
      .join("; ")}.`;
    return { says: "leak", kind: "python-leak", weight: 0.85, detail, suspects: types };
  },
};

/** "app.Session grows by 12 MiB/h to 40 MiB, 52,000 objects, in module app → sessions" */
function told(observations: Observations, suspect: SiteJudgement): string {
  const { site, slope } = suspect;
  const holder = observations.holderOf(suspect)?.holder;
  const objects = Math.round(site.liveObjects).toLocaleString("en-US");
  return (
    `${site.type} grows by ${rateText(slope)} to ${bytesText(site.liveBytes.at(-1) ?? 0)}, ${objects} objects` +
    (holder ? `, in ${holder.path.join(" → ")}` : "")
  );
}
