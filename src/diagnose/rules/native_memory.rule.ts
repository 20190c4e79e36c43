import { formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Observations } from "../evidence/observations.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

const MOST_OF_GROWTH = 0.5;
const LEAST_HELD = 0.3;
/** Libraries whose buffers come from malloc and are owned by Python objects. */
const ARRAY_LIBRARIES =
  /[/\\](?:numpy|torch|pandas|pyarrow|scipy|PIL|cv2|jax|jaxlib|polars|tensorflow)[/\\]/;

/** Memory grows that no Python object holds: C, C++ or Rust code allocated it, or does not release its Python objects. */
export const nativeMemory: Rule = {
  name: "native-memory",
  judge(observations) {
    const { suspects } = observations;
    if (suspects.length === 0 || observations.evidence.allocatorsUnknown) {
      return null;
    }
    const all = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const unheld = suspects.filter((suspect) => isUnheld(observations, suspect));
    const slope = unheld.reduce((sum, suspect) => sum + suspect.slope, 0);
    if (slope < MOST_OF_GROWTH * all) {
      return silent("The growing memory was allocated by Python or is held by Python objects.");
    }
    const ofPython = unheld.filter(({ site }) => site.domain === "python");
    const looked = unheld.some((suspect) => (observations.holderOf(suspect)?.looked ?? 0) > 0);
    return {
      says: "leak",
      kind: "native-leak",
      weight: looked ? 0.96 : 0.91,
      detail: `${formatShare(slope / all)} of what sites keep (${formatSlopeBriefly(slope)}) ${allocatedBy(ofPython.length, unheld.length)}, and ${looked ? "no Python object refers to it" : "no loaded library has objects that would hold such memory"}.`,
      suspects: unheld,
    };
  },
};

/** Native code also allocates with Python's allocators, which CPython itself uses for objects. */
function allocatedBy(ofPython: number, all: number): string {
  if (ofPython === 0) {
    return "was allocated by native code";
  }
  return ofPython === all
    ? "comes from Python's own allocators"
    : "was allocated by native code or comes from Python's own allocators";
}

function isUnheld(observations: Observations, suspect: SiteJudgement): boolean {
  const holder = observations.holderOf(suspect);
  // A block that is reallocated all the time is freed before its holder is looked up.
  if (holder && holder.looked > 0 && suspect.course !== "swells") {
    // Memory kept by an autograd graph has no Python object either; the rule autograd-graph judges it.
    return holder.held + holder.garbage < LEAST_HELD * holder.looked && holder.graph === 0;
  }
  return (
    suspect.site.domain !== "python" &&
    !(observations.evidence.sites?.files ?? []).some((file) => ARRAY_LIBRARIES.test(file))
  );
}
