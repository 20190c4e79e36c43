import { growingHandles, type Handles, mostOfOne } from "../causes/growing_handles.js";
import { handlesOf } from "../causes/named_holder.js";
import type { Observations } from "../evidence/observations.js";
import { isSamePlace } from "../evidence/short_path.js";
import type { Growth } from "../series/growth.js";
import { headlineOf } from "../sites/headline_frame.js";
import { riseOfWork } from "../sites/load.js";
import { keeps } from "../sites/suspects.js";
import { settledBy } from "../wording/window_needed.js";
import { type Finding, open, type Rule, silent } from "./rule.js";

/** Work has risen at least this many times if it explains the handles. */
const LEAST_WORK = 1.25;
const LOAD_WEIGHT = 0.6;

/** The number of descriptors or threads only rises. The handles leak, and memory with them. */
export const handles: Rule = {
  name: "handles",
  judge(observations) {
    const found = growingHandles(observations);
    if (found === null) {
      const known = observations.target.readings("openFiles").values.length > 0;
      return known ? silent("Open files, sockets and threads do not accumulate.") : null;
    }
    const { name, growth } = found;
    const shown = name === "unwaited children" ? "ended children that nothing waited for" : name;
    const perMinute = growth.slope * 60_000;
    const rose = growth.level / Math.max(1, growth.baseline);
    const { evidence, windowMs } = observations;
    const periodBytes = Math.max(0, ...observations.target.readings("periodBytes").values);
    const work = evidence.sites
      ? riseOfWork(evidence.sites, evidence.window.startMs, periodBytes)
      : 1;
    if (work >= LEAST_WORK && rose <= work) {
      return open(
        `The number of ${shown} rose to ${Math.round(growth.level)}, no more than the work that the program does; ${settledBy(observations, 2 * windowMs)}.`,
        LOAD_WEIGHT,
        2 * windowMs,
      );
    }
    return {
      says: "leak",
      kind: "handle-leak",
      weight: 0.97,
      detail: `The number of ${shown} grows by ${perMinute.toFixed(perMinute < 10 ? 1 : 0)} a minute, to ${Math.round(growth.level)} now, and none are released.`,
      ...accusedWith(observations, name, growth),
    };
  },
};

/** Sites that may keep the memory belonging to each handle. Sites whose memory is held elsewhere are separate leaks. */
function accusedWith(
  observations: Observations,
  name: Handles,
  handles: Growth,
): Pick<Finding, "suspects" | "explainedSlope"> {
  const growing = observations.sites.filter(
    ({ course, slope }) => (keeps(course) || course === "small") && slope > 0,
  );
  const found = name === "threads" ? null : handlesOf(observations.evidence);
  const path = found?.holder?.path ?? [];
  const makers = new Set(found?.madeAt.map((frame) => frame.function));
  const suspects = growing.filter((suspect) => {
    const own = observations.holderOf(suspect)?.holder?.path ?? [];
    if (path.length > 0 && own.length > 0) {
      const isMade = makers.has(headlineOf(suspect.site)?.function ?? "");
      return isSamePlace(own, path) || (isMade && isSamePlace(rootOf(own), rootOf(path)));
    }
    return suspect.slope <= mostOfOne(name) * handles.slope;
  });
  return { suspects, explainedSlope: suspects.reduce((sum, { slope }) => sum + slope, 0) };
}

/** The first variable of a path: "module app", "pool"; "thread main", "frame serve", "local pool". */
function rootOf(path: readonly string[]): readonly string[] {
  return path.slice(0, path[0]?.startsWith("thread ") ? 3 : 2);
}
