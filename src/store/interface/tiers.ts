/** The tiers of a store, from fine to coarse. A day is in one of them, and moves to the next one as it gets older. */
import type { Millis } from "../../model/base/units.js";

export const TIERS = ["raw", "10m", "1h", "1d"] as const;
export type Tier = (typeof TIERS)[number];

/** How long a figure of a tier is averaged over; 0: not at all. */
export const TIER_MS: Readonly<Record<Tier, Millis>> = {
  raw: 0,
  "10m": 600_000,
  "1h": 3_600_000,
  "1d": 86_400_000,
};

/** In this tier, the profiles of processes are merged by service, version, environment and kept labels. */
export const MERGED_TIER: Tier = "1d";

/** null: the coarsest. */
export function nextTier(tier: Tier): Tier | null {
  return TIERS[TIERS.indexOf(tier) + 1] ?? null;
}

export function isCoarser(a: Tier, b: Tier): boolean {
  return TIERS.indexOf(a) > TIERS.indexOf(b);
}
