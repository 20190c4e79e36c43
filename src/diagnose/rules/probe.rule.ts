import { formatBytesBriefly, formatExactCount } from "../../model/base/numbers.js";
import type { Observations } from "../evidence/observations.js";
import { type Rule, silent } from "./rule.js";

/** Share of the window's growth that a probe must free to explain it. */
const MOST_OF_GROWTH = 0.5;
const SMALLEST_BYTES = 5_000_000;

/** The result of running gc.collect() and malloc_trim(0) in the program: which of them freed memory. */
export const probe: Rule = {
  name: "probe",
  judge(observations) {
    const { evidence } = observations;
    const { probe: answer } = evidence;
    if (!answer) {
      return null;
    }
    const { collectedObjects, freedBytes, returnedBytes, refusal } = answer;
    const grown = grownBytes(observations);
    const collected = `gc.collect() freed ${formatExactCount(collectedObjects)} objects in cycles, ${formatBytesBriefly(freedBytes)}`;
    const trimmed =
      returnedBytes === null
        ? `malloc_trim(0) could not be called: ${refusal}`
        : `malloc_trim(0) returned ${formatBytesBriefly(returnedBytes)}`;
    const detail = `Probe in the program: ${collected}; ${trimmed}. Memory had grown by ${formatBytesBriefly(grown)} during the window.`;
    const least = Math.max(SMALLEST_BYTES, MOST_OF_GROWTH * grown);
    if (grown < SMALLEST_BYTES) {
      return silent(detail);
    }
    if (freedBytes >= least && freedBytes >= (returnedBytes ?? 0)) {
      return {
        says: "leak",
        kind: "cycle-garbage",
        weight: 0.97,
        detail,
        ...accused(observations),
      };
    }
    return returnedBytes !== null && returnedBytes >= least
      ? { says: "leak", kind: "allocator-retention", weight: 0.94, detail }
      : silent(detail);
  },
};

/** Growth after the first third of the window, of private memory or of the suspect sites, whichever is larger. */
function grownBytes({ target, suspects }: Observations): number {
  const kept = suspects.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
  const anon = target.growth("anonRssBytes");
  return Math.max(kept, anon.shape === "growing" ? anon.rise : 0);
}

function accused({ suspects }: Observations): Partial<Pick<Observations, "suspects">> {
  return suspects.length > 0 ? { suspects } : {};
}
