/**
 * How much of a service its profiles cover. If collectors give the agent to a share of the instances, sums of profiles are
 * sums over that share: an answer names that share and the factor that scales them to all instances.
 */
import { formatShare } from "../../model/base/numbers.js";
import type { CoverageJson } from "../../model/documents/fleet_document.js";
import type { ProfileQuery, Store, WindowProfile } from "../../store/index.js";

/** Each instance runs for a minute or more before it gets the agent, and ends after its last profile: of a short program, a
 * fifth of its life has no profile. Less than that is no share of the instances. */
const COMPLETE = 0.75;

/** `profile`: of this selection, over the time in which it reported. */
export async function coverageOf(
  store: Pick<Store, "running">,
  of: ProfileQuery["of"],
  { instances, reported }: Pick<WindowProfile, "instances" | "reported">,
): Promise<CoverageJson> {
  // Profiles of other profilers come without RSS; a profile is valid longer than a reading of RSS.
  const running =
    reported === null ? 0 : Math.max(instances, await store.running({ of, ...reported }));
  const isComplete = instances === 0 || instances >= COMPLETE * running;
  return { instances, running, factor: isComplete ? 1 : running / instances };
}

/** A sentence if figures are not those of the whole service. */
export function coverageLimits({ instances, running, factor }: CoverageJson): string[] {
  return factor === 1
    ? []
    : [
        `Profiles cover ${countText(instances)} of ${countText(running)} instances that ran on average (${formatShare(instances / running)}): sums are over those. Multiplied by ${factor.toFixed(2)}, they estimate the whole service, if these instances are typical of it.`,
      ];
}

/** Instances, as means over the window: "12.0", "0.14". */
function countText(instances: number): string {
  return instances >= 1 ? instances.toFixed(1) : instances.toPrecision(2);
}
