import { formatBytesBriefly, formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { readersInChildren, sharedAtFork } from "../causes/shared_at_fork.js";
import { isLarge, type ProcessObservation } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import { median } from "../series/trend.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

/** The most that a child's RSS may gain, as a share of its private-memory gain. More is newly allocated memory. */
const MOST_OF_OWN = 0.5;
const SMALLEST_PRIVATE_BYTES = 5_000_000;
/** Of the child's RSS, by the end of the window. */
const SMALLEST_PRIVATE_SHARE = 0.05;
/** Private memory is expected to go on rising if it rose between the last two readings at this share of its mean rate or more. */
const LEAST_LAST_RATE = 0.5;
/** The most by which the gain between the readings is multiplied for what is expected to follow. */
const MOST_EXPECTED = 3;

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
    const { endMs } = evidence.window;
    const turned = forked.filter((child) => turnsPrivate(child, endMs));
    if (turned.length === 0) {
      return forked.length === 0
        ? null
        : silent("No shared pages become private in the child processes.");
    }
    const gained = turned.reduce((sum, child) => sum + privateGain(child), 0);
    const growth = sumOf(turned.map((child) => child.growth("ussBytes")));
    const isRateKnown = turned.some((child) => child.growth("ussBytes").shape !== "short");
    const now = isRateKnown ? ` (${formatSlopeBriefly(growth.slope)} now)` : "";
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
      detail: `In ${turned.length} forked children ${formatBytesBriefly(gained)} of shared pages became private${now}, ${formatShare(median(shares))} of their RSS, while their RSS did not grow: reading Python objects updates their reference counts.`,
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

function turnsPrivate(child: ProcessObservation, endMs: TimeMs): boolean {
  const gain = privateGain(child);
  const rss = Math.max(0, child.growth("rssBytes").wholeRise);
  const own = child.growth("ussBytes");
  return (
    gain >= SMALLEST_PRIVATE_BYTES &&
    expectedGain(child, child.process.endedMs ?? endMs) >=
      SMALLEST_PRIVATE_SHARE * child.growth("rssBytes").level &&
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

/** {@link privateGain} by `endMs`: the last reading may be long before, while private memory still rises. */
function expectedGain(child: ProcessObservation, endMs: TimeMs): Bytes {
  const { times, values } = child.readings("ussBytes");
  const gain = privateGain(child);
  const rate = (from: number, to: number) =>
    ((values.at(to) as number) - (values.at(from) as number)) /
    ((times.at(to) as number) - (times.at(from) as number));
  if (values.length < 3 || rate(-2, -1) < LEAST_LAST_RATE * rate(0, -1)) {
    return gain;
  }
  const [first, last] = [times[0] as number, times.at(-1) as number];
  return gain * Math.min(MOST_EXPECTED, (endMs - first) / (last - first));
}
