/** Observations -> the rules' findings -> the causes of growth -> one verdict with its evidence. */

import { shellWord } from "../../model/base/shell_word.js";
import type {
  AdviceJson,
  DiagnosisJson,
  FillingJson,
  VerdictKind,
} from "../../model/documents/diagnosis_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { baseName } from "../../model/profile/frame_text.js";
import { growingHandles } from "../causes/growing_handles.js";
import type { BoundedSuspect } from "../evidence/bounded_holders.js";
import type { Evidence } from "../evidence/evidence.js";
import { moreObjects } from "../evidence/object_growth.js";
import { type Observations, observe } from "../evidence/observations.js";
import { RULES } from "../rules/index.js";
import type { Finding } from "../rules/rule.js";
import { isFirm, risesLate } from "../series/growth.js";
import { isWithinSwings } from "../series/swings.js";
import { adviceFor, watchLongerAdvice } from "../wording/advice.js";
import { deviceSummary, insufficientSummary, summaryOf } from "../wording/summary_sentence.js";
import { hasEnded } from "../wording/window_needed.js";
import { accusedBy, NOBODY, suspectsOf } from "./accused_sites.js";
import { alsoFound, type Cause, causesOf, type Judged, mainCause } from "./causes.js";
import { confidenceOf } from "./confidence.js";
import { deviceSuspects } from "./device_suspects.js";
import { growthOf, partsOf } from "./growth_figures.js";
import { leastSeen, missingEvidence } from "./limits.js";
import { withPids } from "./live_commands.js";
import { withMemoryEnd } from "./memory_end.js";
import { rulesFor, selectionGrowth, withSelection } from "./selection.js";
import { unexplainedGrowth } from "./unexplained_growth.js";
import { withYouth } from "./young_window.js";

const LONGEST_COMMAND = 200;

/** Never throws; evidence that shows nothing gives "insufficient-evidence". */
export function diagnose(evidence: Evidence): DiagnosisJson {
  const observations = observe(evidence);
  const findings: Judged[] = rulesFor(evidence, RULES).flatMap(({ name, judge }) => {
    const finding = judge(observations);
    return finding === null ? [] : [{ rule: name, finding }];
  });
  const causes = causesOf(findings);
  const { finding: found, cause } = decide(findings, causes, observations);
  const decisive = found === null ? null : withYouth(found, observations);
  const kind = decisive?.kind ?? "insufficient-evidence";
  const blamed =
    decisive?.says === "leak" ? accusedBy(ofCause(decisive, cause), kind, observations) : NOBODY;
  const { accused } = blamed;
  const suspects =
    decisive?.deviceSites === undefined
      ? suspectsOf(observations, blamed, kind)
      : deviceSuspects(evidence.target.pid, decisive);
  const growth = growthOf(observations, decisive, accused);
  const census = moreObjects(evidence);
  const others = cause === null ? [] : alsoFound(causes, cause, observations);
  const document: DiagnosisJson = {
    schema: "tidemark.diagnosis/1",
    target: evidence.target,
    window: {
      startMs: evidence.window.startMs,
      endMs: evidence.window.endMs,
      points: observations.target.readings("rssBytes").values.length,
    },
    verdict: {
      kind,
      confidence: confidenceOf(decisive, findings, observations, suspects[0]),
      summary: summary(kind, decisive, () =>
        summaryOf(kind, observations, growth, accused, suspects),
      ),
    },
    ...(others.length === 0 ? {} : { alsoFound: others }),
    ...(observations.bounded.length === 0
      ? {}
      : { filling: observations.bounded.map(fillingJson) }),
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
      ...(suspects.some(({ advice }) => advice.length > 0) && kind !== "insufficient-evidence"
        ? []
        : adviceOf(decisive, kind, observations)),
      ...findings.flatMap(({ finding }) => finding.beside ?? []),
    ],
    limits: [
      ...evidence.limits,
      ...missingEvidence(evidence, kind),
      ...leastSeen(observations, kind),
    ],
  };
  return withPids(withSelection(withMemoryEnd(document, observations), observations), observations);
}

function fillingJson({ suspect, holder, bound }: BoundedSuspect): FillingJson {
  return { stack: [...(suspect.site.keptStacks[0]?.frames ?? [])], holder, bound };
}

function adviceOf(
  decisive: Finding | null,
  kind: VerdictKind,
  observations: Observations,
): readonly AdviceJson[] {
  if (decisive?.advice !== undefined) {
    return decisive.advice;
  }
  if (decisive?.neededMs !== undefined) {
    return [watchLongerAdvice(decisive.neededMs, commandToRepeat(observations))];
  }
  const handles = growingHandles(observations)?.name;
  return adviceFor(kind, { holder: null, code: "", ...(handles === undefined ? {} : { handles }) });
}

/** The command line of a recorded program that has ended, without its Python; "" while it runs. */
function commandToRepeat(observations: Observations): string {
  if (!hasEnded(observations)) {
    return "";
  }
  const [first = "", ...rest] = observations.evidence.target.command;
  const words = /^python[\d.]*$/.test(baseName(first)) && rest.length > 0 ? rest : [first, ...rest];
  return oneLine(words.map(shellWord).join(" "), LONGEST_COMMAND);
}

interface Decision {
  readonly finding: Finding | null;
  /** The cause that the finding concerns; null if it accuses nothing. */
  readonly cause: Cause | null;
}

/**
 * The finding with the largest weight decides; between equal weights, the first in the list of rules. Among
 * leaks, one that explains by far the most growth may decide. While the whole tree grows with certainty, or did
 * in the last third, no harmless finding may decide unless it names what grows and why that will stop.
 */
function decide(
  findings: readonly Judged[],
  causes: readonly Cause[],
  observations: Observations,
): Decision {
  const heaviest = findings.reduce<Finding | null>(
    (best, { finding }) =>
      finding.kind !== null && finding.weight > (best?.weight ?? 0) ? finding : best,
    null,
  );
  const main = mainCause(causes);
  const byCause = (cause: Cause): Decision => ({ finding: cause.finding, cause });
  if (main !== null && causes.some(({ finding }) => isSame(finding, heaviest))) {
    return byCause(main);
  }
  const isCalm = heaviest?.says === "no leak" && !heaviest.namesCause;
  const { total } = observations;
  if (
    heaviest !== null &&
    !(isCalm && (isFirm(total) || (risesLate(total) && !isWithinSwings(total.readings))))
  ) {
    return { finding: heaviest, cause: null };
  }
  return main === null
    ? {
        finding: selectionGrowth(observations) ?? unexplainedGrowth(observations, heaviest),
        cause: null,
      }
    : byCause(main);
}

function isSame(finding: Finding, other: Finding | null): boolean {
  return finding.kind === other?.kind && finding.detail === other.detail;
}

/** The finding, restricted to the suspects of its cause. */
function ofCause(finding: Finding, cause: Cause | null): Finding {
  return cause === null || finding.suspects === undefined
    ? finding
    : { ...finding, suspects: cause.suspects };
}

function summary(kind: VerdictKind, decisive: Finding | null, otherwise: () => string): string {
  if (decisive?.about === "device") {
    return deviceSummary(kind, decisive.detail);
  }
  return kind === "insufficient-evidence" && decisive
    ? insufficientSummary(decisive.detail)
    : (decisive?.sentence ?? otherwise());
}
