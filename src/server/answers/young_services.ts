/**
 * A service that has run for minutes has too few readings for a diagnosis of all its processes; the diagnoses of its
 * instances, which know each process's allocations, may know the line and the holder by then. Its summary names them.
 */
import { formatCount } from "../../model/base/numbers.js";
import { LEAK_KINDS, type VerdictKind } from "../../model/documents/diagnosis_document.js";
import type {
  FleetDiagnosesJson,
  FleetDiagnosisJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import type { FleetVerdictsJson } from "../../model/documents/fleet_document.js";
import { verdictText } from "../../model/documents/verdict_text.js";

type InstanceVerdict = FleetVerdictsJson["verdicts"][number];

/** Whether the verdicts of instances would add something. */
export function hasYoung({ diagnoses }: FleetDiagnosesJson): boolean {
  return diagnoses.some(isYoung);
}

export function withInstanceVerdicts(
  document: FleetDiagnosesJson,
  { verdicts }: FleetVerdictsJson,
): FleetDiagnosesJson {
  const accused = verdicts.filter(({ kind, isRunning }) => isRunning && LEAK_KINDS.has(kind));
  return {
    ...document,
    diagnoses: document.diagnoses.map((each) => {
      const ofService = accused.filter(({ service }) => service === each.service);
      return isYoung(each) ? summarized(each, ofService) : each;
    }),
  };
}

function isYoung({ verdict, versions, own }: FleetDiagnosisJson): boolean {
  return (
    own !== undefined ||
    (verdict.kind === "insufficient-evidence" && versions.every(({ shape }) => shape === "short"))
  );
}

/** `verdicts`: the fastest growing first. */
function summarized(
  diagnosis: FleetDiagnosisJson,
  [first, ...others]: readonly InstanceVerdict[],
): FleetDiagnosisJson {
  if (first === undefined) {
    return diagnosis;
  }
  const { kind, confidence, summary } = first;
  const count = others.length + 1;
  const who =
    count === 1 ? "One of its instances has" : `${formatCount(count)} of its instances have`;
  const which = count === 1 ? "" : ", the fastest growing";
  return {
    ...diagnosis,
    verdict: {
      ...diagnosis.verdict,
      summary: `${diagnosis.verdict.summary} ${who} a verdict${which}: ${verdictText({ kind: kind as VerdictKind, confidence })}. ${summary}`,
    },
  };
}
