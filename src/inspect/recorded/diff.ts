/** The difference between two recordings, or two moments of one, as its document: `tidemark diff`. */
import type { DiffJson, SummaryJson } from "../../model/documents/documents.js";
import { addUp } from "./site_groups.js";

/** One side of a comparison: a recording at a moment. */
interface DiffSide {
  /** Path of the recording. */
  readonly file: string;
  readonly summary: SummaryJson;
}

/** Joins the sites of both sides by stack and domain; the largest growth comes first. */
export function diffDocument(a: DiffSide, b: DiffSide): DiffJson {
  const sites = joinSites(a, b).sort((x, y) => y.growthBytes - x.growthBytes);
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
      peakRssBytesA: a.summary.rss.peakBytes,
      peakRssBytesB: b.summary.rss.peakBytes,
    },
    sites,
    limits: [...new Set([...a.summary.limits, ...b.summary.limits])],
  };
}

function joinSites(a: DiffSide, b: DiffSide): DiffJson["sites"] {
  const joined = new Map<string, DiffJson["sites"][number]>();
  for (const [side, key] of [
    [a, "liveBytesA"],
    [b, "liveBytesB"],
  ] as const) {
    for (const { stack, domain, liveBytes, standardErrorBytes } of side.summary.sites) {
      const id = JSON.stringify([domain, stack]);
      const site = joined.get(id) ?? {
        stack,
        domain,
        liveBytesA: 0,
        liveBytesB: 0,
        growthBytes: 0,
        standardErrorBytes: 0,
      };
      site[key] += liveBytes;
      site.growthBytes = site.liveBytesB - site.liveBytesA;
      site.standardErrorBytes = Math.hypot(site.standardErrorBytes, standardErrorBytes);
      joined.set(id, site);
    }
  }
  return [...joined.values()];
}

function liveBytes({ summary }: DiffSide): number {
  return summary.sites.reduce((sum, site) => sum + site.liveBytes, 0);
}
