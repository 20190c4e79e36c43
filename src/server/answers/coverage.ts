/**
 * How much of a service its profiles cover. If collectors give the agent to a share of the instances, sums of profiles are
 * sums over that share: an answer names that share and the factor that scales them to all instances.
 */
import { formatShare } from "../../model/base/numbers.js";
import type { CoverageJson } from "../../model/documents/fleet_document.js";
import type { ProfileQuery, Store } from "../../store/index.js";

/** Instances start and end between two profiles, so a small difference is no share. */
const COMPLETE = 0.95;

export async function coverageOf(
  store: Pick<Store, "running">,
  query: Pick<ProfileQuery, "of" | "startMs" | "endMs">,
  instances: number,
): Promise<CoverageJson> {
  // Profiles of other profilers come without RSS; a profile is valid longer than a reading of RSS.
  const running = Math.max(instances, await store.running(query));
  const isComplete = instances === 0 || instances >= COMPLETE * running;
  return { instances, running, factor: isComplete ? 1 : running / instances };
}

/** A sentence if figures are not those of the whole service. */
export function coverageLimits({ instances, running, factor }: CoverageJson): string[] {
  return factor === 1
    ? []
    : [
        `Profiles cover ${instances.toFixed(1)} of ${running.toFixed(1)} running instances (${formatShare(instances / running)}): sums are over those. Multiplied by ${factor.toFixed(2)}, they estimate the whole service, if these instances are typical of it.`,
      ];
}
