import type { Bytes } from "../../model/base/units.js";
import type { Metric } from "../../model/profile/series.js";
import { handlesOf } from "../causes/named_holder.js";
import type { Observations } from "../evidence/observations.js";
import { isSamePlace } from "../evidence/short_path.js";
import type { Growth } from "../series/growth.js";
import { headlineOf } from "../sites/headline_frame.js";
import { riseOfWork } from "../sites/load.js";
import { keeps } from "../sites/suspects.js";
import { settledBy } from "../wording/window_needed.js";
import { type Finding, open, type Rule, silent } from "./rule.js";

/** A rise by fewer handles is a pool that fills. */
const FEWEST_HANDLES = 15;

/** The most memory that one file, socket or thread keeps. A site that gains more per handle is a separate leak. */
const MOST_OF_ONE_HANDLE: Bytes = 1.25 * 2 ** 20;

/** Work has risen at least this many times if it explains the handles. */
const LEAST_WORK = 1.25;
const LOAD_WEIGHT = 0.6;

const KINDS: readonly (readonly [Metric, string])[] = [
  ["openSockets", "open sockets"],
  ["openFiles", "open files"],
  ["threads", "threads"],
];

/** The number of descriptors or threads only rises. The handles leak, and memory with them. */
export const handles: Rule = {
  name: "handles",
  judge(observations) {
    const growing = KINDS.map(([metric, name]) => ({
      name,
      growth: most(observations, metric),
    })).filter(({ growth }) => growth.shape === "growing" && growth.rise >= FEWEST_HANDLES);
    const [worst] = growing.sort((a, b) => b.growth.rise - a.growth.rise);
    if (!worst) {
      const known = observations.target.readings("openFiles").values.length > 0;
      return known ? silent("Open files, sockets and threads do not accumulate.") : null;
    }
    const perMinute = worst.growth.slope * 60_000;
    // A socket is also an open file; the more specific name is reported.
    const { name } = growing.find((kind) => kind.growth.rise > 0.8 * worst.growth.rise) ?? worst;
    const sockets = growing.find((kind) => kind.name === "open sockets");
    const shown =
      sockets && worst.name === "open files" && sockets.growth.rise > 0.8 * worst.growth.rise
        ? sockets.name
        : name;
    const rose = worst.growth.level / Math.max(1, worst.growth.baseline);
    const { evidence, windowMs } = observations;
    const work = evidence.sites ? riseOfWork(evidence.sites, evidence.window.startMs) : 1;
    if (work >= LEAST_WORK && rose <= work) {
      return open(
        `The number of ${shown} rose to ${Math.round(worst.growth.level)}, no more than the work that the program does; ${settledBy(2 * windowMs)}.`,
        LOAD_WEIGHT,
        2 * windowMs,
      );
    }
    return {
      says: "leak",
      kind: "handle-leak",
      weight: 0.97,
      detail: `The number of ${shown} grows by ${perMinute.toFixed(perMinute < 10 ? 1 : 0)} a minute, to ${Math.round(worst.growth.level)} now, and none are released.`,
      ...accusedWith(observations, shown, worst.growth),
    };
  },
};

/** Sites that may keep the memory belonging to each handle. Sites whose memory is held elsewhere are separate leaks. */
function accusedWith(
  observations: Observations,
  shown: string,
  handles: Growth,
): Pick<Finding, "suspects" | "explainedSlope"> {
  const growing = observations.sites.filter(
    ({ course, slope }) => (keeps(course) || course === "small") && slope > 0,
  );
  const found = shown === "threads" ? null : handlesOf(observations.evidence);
  const path = found?.holder?.path ?? [];
  const makers = new Set(found?.madeAt.map((frame) => frame.function));
  const suspects = growing.filter((suspect) => {
    const own = observations.holderOf(suspect)?.holder?.path ?? [];
    if (path.length > 0 && own.length > 0) {
      const isMade = makers.has(headlineOf(suspect.site)?.function ?? "");
      return isSamePlace(own, path) || (isMade && isSamePlace(rootOf(own), rootOf(path)));
    }
    return suspect.slope <= MOST_OF_ONE_HANDLE * handles.slope;
  });
  return { suspects, explainedSlope: suspects.reduce((sum, { slope }) => sum + slope, 0) };
}

/** The first variable of a path: "module app", "pool"; "thread main", "frame serve", "local pool". */
function rootOf(path: readonly string[]): readonly string[] {
  return path.slice(0, path[0]?.startsWith("thread ") ? 3 : 2);
}

/** The growth in the process where the metric grows most. */
function most({ processes }: Observations, metric: Metric): Growth {
  return processes
    .map((process) => process.growth(metric))
    .reduce((best, growth) =>
      Number(growth.shape === "growing") * growth.rise >
      Number(best.shape === "growing") * best.rise
        ? growth
        : best,
    );
}
