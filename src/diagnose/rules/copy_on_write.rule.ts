import { formatBytesBriefly, formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import { readersInChildren, sharedAtFork } from "../causes/shared_at_fork.js";
import { isLarge, type ProcessObservation } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import { median } from "../series/trend.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

/** RSS may grow by this share of the gain in private memory: more growth is memory of the child's own. */
const MOST_OF_OWN = 0.5;
const SMALLEST_PRIVATE_BYTES = 5_000_000;

/** Pages that a fork shared turn private in the children: their own memory grows, their RSS does not, and
 * their allocations do not either. */
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
      return forked.length === 0 ? null : silent("Pages of the children do not turn private.");
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
      detail: `In ${turned.length} forked children ${formatBytesBriefly(gained)} of shared pages turned private (${formatSlopeBriefly(growth.slope)} now), ${formatShare(median(shares))} of their RSS, while their RSS stayed: reading Python objects writes their reference counts.`,
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

/** The sum of the rises; a child whose memory falls does not reduce it. */
function sumOf(growths: readonly Growth[]): Growth {
  const sum = (figure: "slope" | "low" | "high") =>
    growths.reduce((total, growth) => total + Math.max(0, growth[figure]), 0);
  return { ...(growths[0] as Growth), slope: sum("slope"), low: sum("low"), high: sum("high") };
}

/** Last private memory less the first reading of it. */
function privateGain(child: ProcessObservation): number {
  const { values } = child.readings("ussBytes");
  return values.length < 3 ? 0 : (values.at(-1) as number) - (values[0] as number);
}
