import type { Metric } from "../../model/profile/series.js";
import type { Observations } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import { keeps } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

/** Fewer more than this are a pool that fills. */
const FEWEST_HANDLES = 15;

const KINDS: readonly (readonly [Metric, string])[] = [
  ["openSockets", "open sockets"],
  ["openFiles", "open files"],
  ["threads", "threads"],
];

/** Descriptors or threads that only ever become more: what leaks is the handle, and memory comes with it. */
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
    // A socket is a file as well: the narrower name is the truer one.
    const { name } = growing.find((kind) => kind.growth.rise > 0.8 * worst.growth.rise) ?? worst;
    const sockets = growing.find((kind) => kind.name === "open sockets");
    const shown =
      sockets && worst.name === "open files" && sockets.growth.rise > 0.8 * worst.growth.rise
        ? sockets.name
        : name;
    return {
      says: "leak",
      kind: "handle-leak",
      weight: 0.97,
      detail: `The number of ${shown} grows by ${perMinute.toFixed(perMinute < 10 ? 1 : 0)} a minute, to ${Math.round(worst.growth.level)} now, and none is given back.`,
      suspects: observations.sites.filter(
        ({ course, slope }) => (keeps(course) || course === "small") && slope > 0,
      ),
    };
  },
};

/** Of the process in which the figure grows most. */
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
