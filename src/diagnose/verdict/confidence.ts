import type { Millis } from "../../model/base/units.js";
import type { SuspectJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { smallestRise } from "../series/growth.js";
import { CLEARED_WITHIN_MS, mayBeCleared } from "../wording/window_needed.js";
import type { Judged } from "./causes.js";

/** Reduction for each finding that contradicts the verdict. */
const AGAINST = 0.08;
const LEAST_AGAINST = 0.5;
const LEAST = 0.1;

/** Reduction if no lookup shows whether Python objects, garbage or C code keep the suspects' memory. */
const NOT_LOOKED_UP = 0.15;
const KINDS_OF_HOLDING: ReadonlySet<VerdictKind | null> = new Set<VerdictKind>([
  "python-leak",
  "native-leak",
]);

/** Confidence that there is no growth, by the length of a window without growth. Interpolated between rows. */
const CALM_BY_WINDOW: readonly (readonly [Millis, number])[] = [
  [10_000, 0.4],
  [30_000, 0.55],
  [60_000, 0.7],
  [180_000, 0.85],
  [600_000, 0.95],
];
/** The most confidence that a container leaks which the code may still clear, by the length of the window. */
const LEAK_BY_WINDOW: typeof CALM_BY_WINDOW = [
  [25_000, 0.6],
  [CLEARED_WITHIN_MS, 0.9],
];
/** If the interval includes significant growth, the window was too noisy to exclude it. */
const MOST_OF_NOISY = 0.6;

/** The rule's own weight, reduced if others contradict it; 0 for a verdict that is none yet. `suspect`: the first one. */
export function confidenceOf(
  decisive: Finding | null,
  findings: readonly Judged[],
  observations: Observations,
  suspect?: SuspectJson,
): number {
  if (!decisive || decisive.kind === "insufficient-evidence") {
    return 0;
  }
  const against = findings.filter(
    ({ finding }) =>
      finding.says !== "silent" &&
      finding.says !== decisive.says &&
      finding.weight >= LEAST_AGAINST,
  );
  const own =
    decisive.kind === "steady"
      ? confidenceOfCalm(observations)
      : decisive.weight -
        AGAINST * against.length -
        (isNotLookedUp(decisive, observations) ? NOT_LOOKED_UP : 0);
  const most = mayBeCleared(decisive.kind, observations, suspect)
    ? interpolated(observations.windowMs, LEAK_BY_WINDOW)
    : 1;
  return Math.round(Math.max(LEAST, Math.min(own, most)) * 100) / 100;
}

function isNotLookedUp({ kind, suspects = [] }: Finding, observations: Observations): boolean {
  return (
    KINDS_OF_HOLDING.has(kind) &&
    suspects.length > 0 &&
    observations.evidence.sites !== undefined &&
    suspects.every((suspect) => observations.holderOf(suspect) === null)
  );
}

function confidenceOfCalm({ windowMs, total }: Observations): number {
  const sure = interpolated(windowMs, CALM_BY_WINDOW);
  const isNoisy = total.high * total.spanMs > smallestRise(total.spanMs, total.level);
  return isNoisy ? Math.min(sure, MOST_OF_NOISY) : sure;
}

function interpolated(windowMs: Millis, table: typeof CALM_BY_WINDOW): number {
  let [fromMs, from] = table[0] ?? [0, 0];
  for (const [untilMs, until] of table) {
    if (windowMs <= untilMs) {
      const share = untilMs > fromMs ? Math.max(0, (windowMs - fromMs) / (untilMs - fromMs)) : 1;
      return from + share * (until - from);
    }
    [fromMs, from] = [untilMs, until];
  }
  return from;
}
