import { formatBytesBriefly, formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import { readersInChildren, sharedAtFork } from "../causes/shared_at_fork.js";
import { isLarge, type ProcessObservation } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import { median } from "../series/trend.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

/** The most that a child's RSS may gain, as a share of its private-memory gain. More is newly allocated memory. */
const MOST_OF_OWN = 0.5;
const SMALLEST_PRIVATE_BYTES = 5_000_000;

/**
 * Pages shared by a fork become private in the children: their private memory grows, but neither their RSS nor
 * their allocations do.
 */
export const copyOnWrite: Rule = {
  name: "copy-on-write",
  judge(observations) {
    const { evidence, processes, suspects } = observations;
    const forked = processes.filter(
      ({ isTarget, process }) =>
        !isTarget && processes.some((p) => p.process.pid === process.parentPid),
    );
    const turned = forked.filter((child) => turnsPrivate(child));
    if (turned.length === 0) {
      return forked.length === 0
        ? null
        : silent("No shared pages become private in the child processes.");
    }
    const gained = turned.reduce((sum, child) => sum + privateGain(child), 0);
    const growth = sumOf(turned.map((child) => child.growth("ussBytes")));
    const shares = turned.map(
      (child) => privateGain(child) / Math.max(1, child.growth("rssBytes").level),
    );
    const forkedMs = Math.min(...turned.map(({ process }) => process.startedMs));
    const gainSlope = gained / Math.max(1, evidence.window.endMs - forkedMs);
    const inEachChild = (judgement: SiteJudgement): SiteJudgement => ({
      ...judgement,
      turnsPrivateIn: turned
        .map((child) => ({
          pid: child.process.pid,
          slope: (judgement.slope * privateGain(child)) / gained,
        }))
        .sort((a, b) => b.slope - a.slope),
    });
    const ownSuspects = suspects.some(({ site }) => turned.some((c) => c.process.pid === site.pid));
    return {
      says: "leak",
      kind: "copy-on-write",
      weight: ownSuspects ? 0.7 : 0.94,
      detail: `In ${turned.length} forked children ${formatBytesBriefly(gained)} of shared pages became private (${formatSlopeBriefly(growth.slope)} now), ${formatShare(median(shares))} of their RSS, while their RSS did not grow: reading Python objects updates their reference counts.`,
      growth,
      suspects: sharedAtFork(
        observations,
        (turned[0] as ProcessObservation).process.parentPid,
        forkedMs,
        gainSlope,
      ).map(inEachChild),
      readers: readersInChildren(
        observations,
        new Set(turned.map(({ process }) => process.pid)),
        gainSlope,
      ).map(inEachChild),
    };
  },
};

function turnsPrivate(child: ProcessObservation): boolean {
  const gain = privateGain(child);
  const rss = Math.max(0, child.growth("rssBytes").wholeRise);
  const own = child.growth("ussBytes");
  return (
    gain >= SMALLEST_PRIVATE_BYTES &&
    gain >= 0.05 * child.growth("rssBytes").level &&
    rss < MOST_OF_OWN * gain &&
    (own.shape === "growing" ? isLarge(own) : true)
  );
}

/** The sum of all rising growths; falling ones are not subtracted. */
function sumOf(growths: readonly Growth[]): Growth {
  const sum = (figure: "slope" | "low" | "high") =>
    growths.reduce((total, growth) => total + Math.max(0, growth[figure]), 0);
  return { ...(growths[0] as Growth), slope: sum("slope"), low: sum("low"), high: sum("high") };
}

/** The last reading of private memory minus the first. The readings are expensive, so a large child may have only two a
 * minute. Two are enough: with constant RSS, the gain cannot be newly allocated memory. */
function privateGain(child: ProcessObservation): number {
  const { values } = child.readings("ussBytes");
  return values.length < 2 ? 0 : (values.at(-1) as number) - (values[0] as number);
}
