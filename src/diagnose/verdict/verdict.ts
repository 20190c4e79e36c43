/** Observations -> the rules' findings -> one verdict, with what it rests on. */
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { Evidence } from "../evidence/evidence.js";
import { moreObjects } from "../evidence/object_growth.js";
import { observe } from "../evidence/observations.js";
import { RULES } from "../rules/index.js";
import type { Finding } from "../rules/rule.js";
import { adviceFor } from "../wording/advice.js";
import { deviceSummary, insufficientSummary, summaryOf } from "../wording/summary_sentence.js";
import { accusedBy, NOBODY, suspectsOf } from "./accused_sites.js";
import { deviceSuspects } from "./device_suspects.js";
import { growthOf, partsOf } from "./growth_figures.js";
import { missingEvidence } from "./limits.js";

interface Judged {
  readonly rule: string;
  readonly finding: Finding;
}

/** Never throws: evidence that says nothing gives "insufficient-evidence". */
export function diagnose(evidence: Evidence): DiagnosisJson {
  const observations = observe(evidence);
  const findings: Judged[] = RULES.flatMap(({ name, judge }) => {
    const finding = judge(observations);
    return finding === null ? [] : [{ rule: name, finding }];
  });
  const decisive = decide(findings);
  const kind = decisive?.kind ?? "insufficient-evidence";
  const blamed = decisive?.says === "leak" ? accusedBy(decisive, kind, observations) : NOBODY;
  const { accused } = blamed;
  const suspects =
    decisive?.deviceSites === undefined
      ? suspectsOf(observations, blamed, kind)
      : deviceSuspects(evidence.target.pid, decisive);
  const growth = growthOf(observations, decisive, accused);
  const census = moreObjects(evidence.census);
  return {
    schema: "tidemark.diagnosis/1",
    target: evidence.target,
    window: {
      startMs: evidence.window.startMs,
      endMs: evidence.window.endMs,
      points: observations.target.process.series.timesMs.length,
    },
    verdict: {
      kind,
      confidence: confidenceOf(decisive, findings),
      summary:
        decisive?.about === "device"
          ? deviceSummary(kind, decisive.detail)
          : kind === "insufficient-evidence" && decisive
            ? insufficientSummary(decisive.detail)
            : summaryOf(kind, observations, growth, accused, suspects),
    },
    growth,
    ledger: partsOf(observations),
    suspects,
    evidence: findings.map(({ rule, finding }) => ({
      rule,
      says: finding.says,
      detail: finding.detail,
    })),
    ...(census === null ? {} : { census }),
    advice: [
      ...(suspects.length > 0 ? [] : (decisive?.advice ?? adviceFor(kind, null, ""))),
      ...findings.flatMap(({ finding }) => finding.beside ?? []),
    ],
    limits: [...evidence.limits, ...missingEvidence(evidence)],
  };
}

/** The heaviest; of equals the first in the list of rules. */
function decide(findings: readonly Judged[]): Finding | null {
  return findings.reduce<Finding | null>(
    (best, { finding }) =>
      finding.kind !== null && finding.weight > (best?.weight ?? 0) ? finding : best,
    null,
  );
}

/** The rule's own weight, less where others speak against it. */
function confidenceOf(decisive: Finding | null, findings: readonly Judged[]): number {
  if (!decisive) {
    return 0;
  }
  const against = findings.filter(
    ({ finding }) =>
      finding.says !== "silent" && finding.says !== decisive.says && finding.weight >= 0.5,
  );
  return Math.round(Math.max(0.1, decisive.weight - 0.08 * against.length) * 100) / 100;
}
