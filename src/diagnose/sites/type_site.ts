import type { Objects, Pid } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { SiteHistory } from "./site_history.js";

/**
 * All objects of a type, too few and too small to be sampled, in the form of a site. `objects`: at each count;
 * `madeAt`: leaf first, empty if unknown.
 */
export function siteOfType(
  key: string,
  pid: Pid,
  type: string,
  objects: readonly Objects[],
  madeAt: readonly FrameJson[],
): SiteHistory {
  return {
    key,
    ...(type === "" ? {} : { type }),
    place: type,
    own: true,
    imports: false,
    pid,
    domain: "python",
    liveBytes: new Float64Array(0),
    allocatedBytes: new Float64Array(0),
    objects: Float64Array.from(objects),
    liveObjects: objects.at(-1) ?? 0,
    liveSamples: 0,
    standardErrorBytes: 0,
    cohortBytes: new Float64Array(0),
    keptStacks: madeAt.length === 0 ? [] : [{ id: 0, frames: madeAt, share: 1 }],
  };
}
