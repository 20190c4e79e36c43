import { formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import { FRAME_STACK } from "../../model/profile/frame_stacks.js";
import type { Observations } from "../evidence/observations.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

const MOST_OF_GROWTH = 0.5;
const LEAST_HELD = 0.3;
/** Share of the looked-up addresses for which the lookup shows that no Python object refers to them. */
const LEAST_UNREFERENCED = 0.5;
/** Libraries whose buffers come from malloc and are owned by Python objects. */
const ARRAY_LIBRARIES =
  /[/\\](?:numpy|torch|pandas|pyarrow|scipy|PIL|cv2|jax|jaxlib|polars|tensorflow)[/\\]/;

/**
 * Memory grows that no Python object holds: C, C++ or Rust code allocated it, or does not release its Python objects.
 * A lookup that found no holder does not show that, because the program may replace the holder all the time.
 */
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
      return silent(
        suspects.some((suspect) => holderIsUnknown(observations, suspect))
          ? HOLDER_UNKNOWN
          : "The growing memory was allocated by Python or is held by Python objects.",
      );
    }
    const ofPython = unheld.filter(({ site }) => site.domain === "python");
    const looked = unheld.some((suspect) => (observations.holderOf(suspect)?.looked ?? 0) > 0);
    return {
      says: "leak",
      kind: "native-leak",
      weight: looked ? 0.96 : 0.91,
      detail: `${formatShare(slope / all)} of what sites keep (${formatSlopeBriefly(slope)}) ${allocatedBy(ofPython.length, unheld.length)}, and ${looked ? claimOf(ofPython.length, unheld.length) : "no loaded library has objects that would hold such memory"}.`,
      suspects: unheld,
    };
  },
};

/** A C library's structures may lead to memory of its own by paths that a lookup does not follow. */
function claimOf(ofPython: number, all: number): string {
  return ofPython === all
    ? "no Python object refers to it"
    : "no Python object was found that leads to it: C code lost it, or a C library keeps it in its own structures, perhaps for an object such as a connection or a parser";
}

/** Native code also allocates with Python's allocators, which CPython itself uses for objects. */
function allocatedBy(ofPython: number, all: number): string {
  if (ofPython === 0) {
    return "was allocated by native code";
  }
  return ofPython === all
    ? "comes from Python's own allocators"
    : "was allocated by native code or comes from Python's own allocators";
}

/** Looked up, and neither held nor unreferenced: the holder was replaced meanwhile, or C code refers to the objects. */
function holderIsUnknown(observations: Observations, suspect: SiteJudgement): boolean {
  const { looked = 0, held = 0, garbage = 0, graph = 0 } = observations.holderOf(suspect) ?? {};
  return looked > 0 && held + garbage + graph < LEAST_HELD * looked;
}

const HOLDER_UNKNOWN =
  "The holder of the growing memory was not found: something refers to its objects, but was replaced while the heap was read, or is in C code. tidemark heap PID --retained pauses the program and shows it.";

/** Pages of a thread or greenlet that runs or waits. */
function isFrameStack({ site }: SiteJudgement): boolean {
  return site.keptStacks[0]?.frames[0]?.function === FRAME_STACK;
}

function isUnheld(observations: Observations, suspect: SiteJudgement): boolean {
  if (isFrameStack(suspect)) {
    return false;
  }
  const holder = observations.holderOf(suspect);
  // A block that is reallocated all the time is freed before its holder is looked up.
  if (holder && holder.looked > 0 && suspect.course !== "swells") {
    // Memory kept by an autograd graph has no Python object either; the rule autograd-graph judges it.
    const { looked, held, garbage, graph } = holder;
    // An older recording has no such count.
    const ofNobody = suspect.site.domain === "python" ? 0 : looked - held - garbage;
    return (
      held + garbage < LEAST_HELD * looked &&
      (holder.unreferenced ?? ofNobody) >= LEAST_UNREFERENCED * looked &&
      graph === 0
    );
  }
  return (
    suspect.site.domain !== "python" &&
    !(observations.evidence.sites?.files ?? []).some((file) => ARRAY_LIBRARIES.test(file))
  );
}
