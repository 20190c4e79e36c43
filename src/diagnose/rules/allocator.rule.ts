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
/** Kept all through the last third: so much, and so much of private memory, is worth a word. */
const SMALLEST_KEPT_BYTES = 20_000_000;
const LEAST_KEPT_SHARE = 0.5;
/** Of the growth: less than that kept by sites is a small leak beside a large loss. */
const LEAST_LEAK_SHARE = 0.25;
/** Of what was kept, so much came after the start. */
const LEAST_LATE_SHARE = 0.5;
/** Of the highest level of private memory: with less, it does come back. */
const LEAST_OF_HIGH = 0.9;
/** Sampled bytes err: what is kept must stand out of that. */
const ERRORS = 4;

/** Of the growth, what the ledger must find in the allocators' own parts. */
const LEAST_IN_LEDGER = 0.25;
const FREE_PARTS: readonly LedgerPartName[] = ["malloc.free", "python.free"];
const KEPT_PARTS: readonly LedgerPartName[] = [...FREE_PARTS, "python.used"];

/** Private memory grows and what lives in it does not: the program freed it, the allocator keeps it. */
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
      detail: `Private memory grows by ${formatSlopeBriefly(anon.slope)}, but ${formatShare(Math.min(1, growth.rise / anon.rise))} of that is not live: it was freed, and the allocator keeps ${formatBytesBriefly(growth.level)}.`,
      growth: anon,
      explainedSlope: anon.rise > 0 ? anon.slope * Math.min(1, growth.rise / anon.rise) : 0,
      suspects: pinning(observations),
    };
  },
};

/** Where ledgers were read: what an allocator kept is in its parts, pymalloc's used ones among them, for an
 * arena's pages are divided by pools. Blocks that are filled at last, and pages that somebody asked the kernel
 * for, are not live at any site, either, but in other parts. */
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

/** It grew once and never came back. What a start needed and freed again is none of it. */
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
      detail: `Of ${formatBytesBriefly(anon.level)} of private memory ${formatBytesBriefly(keptBytes)} are not live and were not for a third of the window: freed, and kept by the allocator.`,
      growth: anon,
      explainedSlope: lateBytes / Math.max(1, anon.spanMs),
      suspects: pinning(observations),
    };
  }
  return silent(
    `Private memory and what lives in it go together: ${formatBytesBriefly(keptBytes)} are not accounted for by live allocations.`,
  );
}
