/** The commands in a verdict's text, with the id of the process while it runs: "tidemark heap PID" becomes "tidemark heap 4242". */
import type { Pid } from "../../model/base/units.js";
import type { AdviceJson, DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { Evidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import { hasEnded } from "../wording/window_needed.js";

const PLACEHOLDER = /\btidemark (\w+) PID\b/g;

export function withPids(document: DiagnosisJson, observations: Observations): DiagnosisJson {
  const { evidence } = observations;
  const { pid } = document.target;
  if (pid === 0 || evidence.importedFrom !== undefined || hasEnded(observations)) {
    return document;
  }
  const named = (text: string, of: Pid) =>
    text.replace(PLACEHOLDER, (_, command: string) => {
      const option = command === "diagnose" && isLeftAlone(evidence) ? " --no-agent" : "";
      return `tidemark ${command} ${of}${option}`;
    });
  const advised = (advice: readonly AdviceJson[], of: Pid) =>
    advice.map((one) => ({ ...one, text: named(one.text, of) }));
  return {
    ...document,
    suspects: document.suspects.map((one) => ({ ...one, advice: advised(one.advice, one.pid) })),
    evidence: document.evidence.map((one) => ({ ...one, detail: named(one.detail, pid) })),
    advice: advised(document.advice, pid),
  };
}

/** It was watched from outside, because the user chose so or no agent could enter. */
function isLeftAlone({ processes }: Evidence): boolean {
  return processes.every(({ profiled }) => !profiled);
}
