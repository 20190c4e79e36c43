/** Which handles accumulate: sockets, files, threads, or children that are not waited for. */
import type { Bytes } from "../../model/base/units.js";
import type { Metric } from "../../model/profile/series.js";
import type { Observations } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";

export type Handles = "open sockets" | "open files" | "threads" | "unwaited children";

/** A rise by fewer handles is a pool that fills. */
const FEWEST_HANDLES = 15;

const KINDS: readonly (readonly [Metric, Handles])[] = [
  ["openSockets", "open sockets"],
  ["openFiles", "open files"],
  ["threads", "threads"],
  ["endedChildren", "unwaited children"],
];

/** The most memory that one of them keeps. What gains more with each is a separate leak. */
export function mostOfOne(name: Handles): Bytes {
  return name === "unwaited children" ? 8 * 2 ** 10 : 1.25 * 2 ** 20;
}

/** `name`: the most specific name of what grows most; null if none grows. */
export function growingHandles(
  observations: Observations,
): { readonly name: Handles; readonly growth: Growth } | null {
  const growing = KINDS.map(([metric, name]) => ({
    name,
    growth: most(observations, metric),
  })).filter(({ growth }) => growth.shape === "growing" && growth.rise >= FEWEST_HANDLES);
  const [worst] = growing.sort((a, b) => b.growth.rise - a.growth.rise);
  if (!worst) {
    return null;
  }
  // A socket is also an open file; the more specific name is reported.
  const { name } = growing.find((kind) => kind.growth.rise > 0.8 * worst.growth.rise) ?? worst;
  const sockets = growing.find((kind) => kind.name === "open sockets");
  const isSocket =
    sockets && worst.name === "open files" && sockets.growth.rise > 0.8 * worst.growth.rise;
  return { name: isSocket ? sockets.name : name, growth: worst.growth };
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
