/**
 * The causes of growth, by the share of the growth that each finding explains. Findings overlap (every leak
 * consists of sites, and several rules judge the same ones), so the most confident finding claims its sites
 * first, and later ones count only the rest.
 */
import type { AlsoFoundJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { isFirm } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { causeSentence } from "../wording/summary_sentence.js";

export interface Judged {
  readonly rule: string;
  readonly finding: Finding;
}

export interface Cause {
  readonly finding: Finding & { readonly kind: VerdictKind };
  /** Bytes per ms that it explains and no more confident finding does. */
  readonly slope: number;
  /** Its suspects that no more confident finding accuses. */
  readonly suspects: readonly SiteJudgement[];
}

/** Share of the growth; smaller causes are not listed. */
const LEAST_SHARE = 0.1;
/** A less confident cause decides if it explains this many times more. */
const OUTWEIGHS = 1.5;
/** A cause with less confidence than this never decides. */
const LEAST_WEIGHT = 0.6;

/** The leaks of host memory, most confident first. */
export function causesOf(findings: readonly Judged[]): Cause[] {
  const claimed = new Set<string>();
  return findings
    .flatMap(({ finding }) => {
      const { kind, says, about } = finding;
      const leaks = says === "leak" && kind !== null && kind !== "insufficient-evidence";
      return leaks && about !== "device" ? [{ ...finding, kind }] : [];
    })
    .sort((a, b) => b.weight - a.weight)
    .flatMap((finding) => {
      const accused = finding.suspects ?? [];
      const { growth, explainedSlope } = finding;
      if (growth !== undefined) {
        // It concerns separate memory: its suspects may lead to that memory, but only mappings are part of it.
        for (const { site } of accused.filter((suspect) => suspect.site.domain === "mapped")) {
          claimed.add(site.key);
        }
        return [{ finding, slope: Math.max(0, explainedSlope ?? growth.slope), suspects: accused }];
      }
      const suspects = accused.filter(({ site }) => !claimed.has(site.key));
      if (accused.length > 0 && suspects.length === 0) {
        return [];
      }
      for (const { site } of suspects) {
        claimed.add(site.key);
      }
      const ofSites = suspects.reduce((sum, suspect) => sum + suspect.slope, 0);
      return [{ finding, slope: Math.max(0, explainedSlope ?? ofSites), suspects }];
    });
}

/** The deciding cause: the most confident one, unless another explains far more of the growth. */
export function mainCause(causes: readonly Cause[]): Cause | null {
  const [surest] = causes;
  const largest = causes
    .filter(({ finding }) => finding.weight >= LEAST_WEIGHT)
    .reduce<Cause | null>((most, cause) => (cause.slope > (most?.slope ?? 0) ? cause : most), null);
  return surest && largest && largest.slope > OUTWEIGHS * surest.slope ? largest : (surest ?? null);
}

/** The other causes of at least 10 % of the growth, largest first, including caches that fill in addition to a leak. */
export function alsoFound(
  causes: readonly Cause[],
  main: Cause,
  { bounded, total }: Observations,
): AlsoFoundJson[] {
  const filling = bounded.map(({ suspect }) => suspect);
  const rows: { kind: VerdictKind; slope: number; suspects: readonly SiteJudgement[] }[] = causes
    .filter((cause) => cause !== main && cause.finding.kind !== main.finding.kind)
    .map(({ finding, slope, suspects }) => ({ kind: finding.kind, slope, suspects }));
  if (filling.length > 0) {
    const slope = filling.reduce((sum, suspect) => sum + suspect.slope, 0);
    rows.push({ kind: "cache-plateau", slope, suspects: filling });
  }
  const explained = rows.reduce((sum, { slope }) => sum + slope, main.slope);
  const all = Math.max(explained, isFirm(total) ? total.slope : 0);
  return (
    rows
      .map(({ kind, slope, suspects }) => ({
        kind,
        share: all > 0 ? Math.round((slope / all) * 100) / 100 : 0,
        summary: causeSentence(kind, suspects, slope),
      }))
      // Handles run out by number, however little memory they use.
      .filter(({ kind, share }) => share >= LEAST_SHARE || kind === "handle-leak")
      .sort((a, b) => b.share - a.share)
  );
}
