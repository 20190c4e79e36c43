/** The difference between two recordings, or two moments of one, as its document: `tidemark diff`. */
import type { Bytes } from "../../model/base/units.js";
import type { DiffJson, SummaryJson, SummarySiteJson } from "../../model/documents/documents.js";
import { addUp } from "./site_groups.js";

/** One side of a comparison: a recording at a moment. */
interface DiffSide {
  /** Path of the recording. */
  readonly file: string;
  readonly summary: SummaryJson;
}

/** A difference within two standard errors of zero may be the sampling alone. */
export function isNoise(growthBytes: Bytes, standardErrorBytes: Bytes): boolean {
  return Math.abs(growthBytes) <= 2 * standardErrorBytes;
}

/** Differences beyond their error first, then by growth, largest first. */
export function bySignificance(
  x: { readonly growthBytes: Bytes; readonly isNoise?: boolean },
  y: { readonly growthBytes: Bytes; readonly isNoise?: boolean },
): number {
  return Number(x.isNoise === true) - Number(y.isNoise === true) || y.growthBytes - x.growthBytes;
}

/** Joins the sites of both sides by stack and domain. */
export function diffDocument(a: DiffSide, b: DiffSide): DiffJson {
  const sites = joinSites(a, b).sort(bySignificance);
  const total = addUp(sites, (site) => [site.growthBytes, site.standardErrorBytes]);
  return {
    schema: "tidemark.diff/1",
    a: { file: a.file, atMs: a.summary.atMs, target: a.summary.target },
    b: { file: b.file, atMs: b.summary.atMs, target: b.summary.target },
    totals: {
      liveBytesA: liveBytes(a),
      liveBytesB: liveBytes(b),
      growthBytes: total.bytes,
      standardErrorBytes: total.standardErrorBytes,
      isNoise: isNoise(total.bytes, total.standardErrorBytes),
      peakRssBytesA: a.summary.rss.peakBytes,
      peakRssBytesB: b.summary.rss.peakBytes,
    },
    sites,
    limits: [...new Set([...otherPrograms(a, b), ...a.summary.limits, ...b.summary.limits])],
  };
}

/** One sentence where the two sides are not of the same command. */
function otherPrograms(a: DiffSide, b: DiffSide): string[] {
  const [left, right] = [a, b].map(({ summary }) => summary.target.command.join(" "));
  return left === right
    ? []
    : [
        `A and B ran different commands: ${left} and ${right}. Sites are joined by their stacks alone.`,
      ];
}

function joinSites(a: DiffSide, b: DiffSide): DiffJson["sites"] {
  const [before, after] = [sitesById(a), sitesById(b)];
  return [...new Set([...before.keys(), ...after.keys()])].map((id) => {
    const [was = NOTHING, is = NOTHING] = [before.get(id), after.get(id)];
    const growthBytes = is.live - was.live;
    const variance = was.variance + is.variance;
    const standardErrorBytes = Math.sqrt(
      a.file === b.file ? Math.min(variance, varianceBetween(was, is)) : variance,
    );
    return {
      stack: (after.get(id) ?? was).stack,
      domain: (after.get(id) ?? was).domain,
      liveBytesA: was.live,
      liveBytesB: is.live,
      growthBytes,
      standardErrorBytes,
      isNoise: isNoise(growthBytes, standardErrorBytes),
    };
  });
}

interface SiteFigures extends Pick<SummarySiteJson, "stack" | "domain"> {
  live: Bytes;
  variance: number;
  allocated: Bytes;
  allocatedVariance: number;
}

const NOTHING: SiteFigures = {
  stack: [],
  domain: "python",
  live: 0,
  variance: 0,
  allocated: 0,
  allocatedVariance: 0,
};

/** Sites that differ in no more than their process are one. */
function sitesById({ summary }: DiffSide): Map<string, SiteFigures> {
  const sites = new Map<string, SiteFigures>();
  for (const site of summary.sites) {
    const { stack, domain } = site;
    const id = JSON.stringify([domain, stack]);
    const sum = sites.get(id) ?? { ...NOTHING, stack, domain };
    sum.live += site.liveBytes;
    sum.variance += site.standardErrorBytes ** 2;
    sum.allocated += site.allocatedBytes;
    sum.allocatedVariance += site.standardErrorAllocatedBytes ** 2;
    sites.set(id, sum);
  }
  return sites;
}

/**
 * Of the growth between two moments of one recording: samples that live at both are the same and add no error. What was
 * sampled in between does, and what was freed in between by its part of it.
 */
function varianceBetween(a: SiteFigures, b: SiteFigures): number {
  const [before, after] = a.allocated <= b.allocated ? [a, b] : [b, a];
  const allocated = after.allocated - before.allocated;
  const variance = Math.max(0, after.allocatedVariance - before.allocatedVariance);
  const freed = Math.max(0, allocated - (after.live - before.live));
  const ofFreed = before.live > 0 ? (before.variance / before.live) * freed : 0;
  return variance + Math.max(ofFreed, allocated > 0 ? (variance / allocated) * freed : 0);
}

function liveBytes({ summary }: DiffSide): number {
  return summary.sites.reduce((sum, site) => sum + site.liveBytes, 0);
}
