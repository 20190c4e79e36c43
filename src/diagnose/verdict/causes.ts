/**
 * The causes of growth, by the share of the growth that each finding explains. Findings overlap (every leak
 * consists of sites, and several rules judge the same ones), so the most confident finding claims its sites
 * first, and later ones count only the rest.
 */
import type { AlsoFoundJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import { filledSites } from "../causes/filled_sites.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { isFirm } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { filledText } from "../wording/filling_cache.js";
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

/** One row of the list, before its share is known. */
interface Row {
  readonly kind: VerdictKind;
  readonly slope: number;
  readonly summary: string;
}

/** The other causes of at least 10 % of the growth, largest first, including caches that fill in addition to a leak. */
export function alsoFound(
  causes: readonly Cause[],
  main: Cause,
  observations: Observations,
): AlsoFoundJson[] {
  const { total } = observations;
  const others = causes
    .filter((cause) => cause !== main && cause.finding.kind !== main.finding.kind)
    .map(({ finding: { kind }, slope, suspects }) => rowOf(kind, slope, suspects, observations));
  const accused = new Set(causes.flatMap(({ suspects }) => suspects.map(({ site }) => site.key)));
  const explainedByLeaks = others.reduce((sum, { slope }) => sum + slope, main.slope);
  // A cache that levels off bends the growth of the program, whose line is then less steep than the cache's.
  const left = isFirm(total)
    ? Math.max(0, total.slope - explainedByLeaks)
    : Number.POSITIVE_INFINITY;
  const rows = [...others, ...caches(observations, accused, left)];
  const explained = rows.reduce((sum, { slope }) => sum + slope, main.slope);
  const all = Math.max(explained, isFirm(total) ? total.slope : 0);
  return (
    rows
      .map(({ kind, slope, summary }) => ({
        kind,
        share: all > 0 ? Math.round((slope / all) * 100) / 100 : 0,
        summary,
      }))
      // Handles run out by number, however little memory they use.
      .filter(({ kind, share }) => share >= LEAST_SHARE || kind === "handle-leak")
      .sort((a, b) => b.share - a.share)
  );
}

/** Caches that fill beside the leak, as one row that names the largest: those with a bound, and those that level off. */
function caches(
  observations: Observations,
  accused: ReadonlySet<string>,
  mostOfFilled: number,
): Row[] {
  const bounded = observations.bounded.map(({ suspect }) => suspect);
  const filled = filledSites(observations)
    .filter(({ judgement }) => !accused.has(judgement.site.key) && !bounded.includes(judgement))
    .sort((a, b) => b.slope - a.slope);
  const ofBounded = bounded.reduce((sum, { slope }) => sum + slope, 0);
  const ofFilled = Math.min(
    Math.max(0, mostOfFilled - ofBounded),
    filled.reduce((sum, { slope }) => sum + slope, 0),
  );
  const [largest] = filled;
  if (largest === undefined || ofBounded > ofFilled) {
    return bounded.length === 0
      ? []
      : [rowOf("cache-plateau", ofBounded + ofFilled, bounded, observations)];
  }
  const summary = filledText(largest);
  return [{ kind: "cache-plateau", slope: ofBounded + ofFilled, summary }];
}

function rowOf(
  kind: VerdictKind,
  slope: number,
  suspects: readonly SiteJudgement[],
  observations: Observations,
): Row {
  return { kind, slope, summary: causeSentence(kind, suspects, slope, observations) };
}
