import { formatBytesBriefly, formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { LedgerPartName } from "../../model/profile/ledger.js";
import { pinsPages } from "../causes/rarely_sampled_sites.js";
import { riseOf, shareOfNewest } from "../evidence/ledger_growth.js";
import type { Observations } from "../evidence/observations.js";
import { isLarge, type ProcessObservation, SMALLEST_RISE_BYTES } from "../evidence/observations.js";
import { isFirm } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Finding, type Rule, silent } from "./rule.js";

const MOST_OF_GROWTH = 0.5;
/**
 * Smallest retained amount, in bytes and as a share of private memory, that is reported. It must be retained
 * for the whole last third.
 */
const SMALLEST_KEPT_BYTES = 20_000_000;
const LEAST_KEPT_SHARE = 0.5;
/** Share of the growth. If sites keep less than this, they are a small leak next to a large allocator loss. */
const LEAST_LEAK_SHARE = 0.25;
/** At least this share of the retained bytes must appear after the start. */
const LEAST_LATE_SHARE = 0.5;
/** Share of the highest level of private memory. Below it, memory does return to the kernel. */
const LEAST_OF_HIGH = 0.9;
/** The retained bytes must exceed the sampling error by this factor. */
const ERRORS = 4;

/** Share of the growth that the ledger must find in the allocators' own parts. */
const LEAST_IN_LEDGER = 0.25;
const FREE_PARTS: readonly LedgerPartName[] = ["malloc.free", "python.free"];
const KEPT_PARTS: readonly LedgerPartName[] = [...FREE_PARTS, "python.used"];

/** Private memory grows but live bytes do not: the program freed memory that the allocator keeps. */
export const allocator: Rule = {
  name: "allocator",
  judge(observations) {
    const { target, unused, suspects } = observations;
    if (!unused) {
      return null;
    }
    const { growth } = unused;
    const anon = target.growth("anonRssBytes");
    const kept = suspects.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
    const grows =
      growth.rise >= SMALLEST_RISE_BYTES &&
      growth.rise >= ERRORS * unused.standardErrorBytes &&
      isLarge(anon) &&
      isFirm(anon) &&
      (anon.shape === "growing" || growth.shape === "growing") &&
      growth.rise >= MOST_OF_GROWTH * anon.rise &&
      kept < MOST_OF_GROWTH * anon.rise &&
      !isElsewhere(target, anon.rise);
    if (!grows) {
      return keeps(observations);
    }
    return {
      says: "leak",
      kind: "allocator-retention",
      weight:
        kept < LEAST_LEAK_SHARE * anon.rise ||
        (riseOf(target, FREE_PARTS) ?? 0) >= MOST_OF_GROWTH * growth.rise
          ? 0.92
          : 0.85,
      detail: `Private memory grows by ${formatSlopeBriefly(anon.slope)}, but ${formatShare(Math.min(1, growth.rise / anon.rise))} of the growth is not live: the program freed it, and the allocator keeps ${formatBytesBriefly(growth.level)}.`,
      growth: anon,
      explainedSlope: anon.rise > 0 ? anon.slope * Math.min(1, growth.rise / anon.rise) : 0,
      suspects: pinning(observations),
    };
  },
};

/**
 * True if ledgers show the growth outside the allocators. Memory that an allocator retains is in the
 * allocator's parts, including pymalloc's used part, since pools share the pages of an arena. Large blocks that
 * fill slowly, and pages mapped directly from the kernel, are not live at any site either, but are in other
 * parts of the ledger.
 */
function isElsewhere(target: ProcessObservation, rise: Bytes): boolean {
  const kept = riseOf(target, KEPT_PARTS);
  const share = kept === null ? shareOfNewest(target, KEPT_PARTS) : kept / rise;
  return share !== null && share < LEAST_IN_LEDGER;
}

function pinning(observations: Observations): readonly SiteJudgement[] {
  const { suspects } = observations;
  return suspects.length > 0 ? suspects : pinsPages(observations);
}

function highest(values: readonly Bytes[]): Bytes {
  return values.reduce((most, bytes) => Math.max(most, bytes), 0);
}

/** Memory grew once and was never returned. Memory that was needed only at startup does not count. */
function keeps(observations: Observations): Finding {
  const { target, unused } = observations;
  const anon = target.growth("anonRssBytes");
  const { keptBytes, lateBytes, standardErrorBytes } = unused as NonNullable<
    Observations["unused"]
  >;
  if (
    keptBytes >= SMALLEST_KEPT_BYTES &&
    lateBytes >= LEAST_LATE_SHARE * keptBytes &&
    anon.level >= LEAST_OF_HIGH * highest(target.readings("anonRssBytes").values) &&
    keptBytes >= LEAST_KEPT_SHARE * anon.level &&
    keptBytes >= ERRORS * standardErrorBytes &&
    !(anon.shape === "growing" && isElsewhere(target, anon.rise))
  ) {
    return {
      says: "leak",
      kind: "allocator-retention",
      weight: 0.65,
      detail: `${formatBytesBriefly(keptBytes)} of ${formatBytesBriefly(anon.level)} of private memory have not been live for a third of the window: the program freed them, and the allocator keeps them.`,
      growth: anon,
      explainedSlope: lateBytes / Math.max(1, anon.spanMs),
      suspects: pinning(observations),
    };
  }
  const kept = `${formatBytesBriefly(Math.max(0, keptBytes))} of ${formatBytesBriefly(anon.level)} of private memory`;
  return silent(
    keptBytes >= LEAST_KEPT_SHARE * anon.level
      ? `${kept} are not live allocations; this part is not known to grow.`
      : `Private memory follows the live allocations: only ${kept} are not live.`,
  );
}
