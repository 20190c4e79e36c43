/** Recording a running process, and detaching from one: `tidemark attach`, `tidemark detach`. */
import { diagnose } from "../../diagnose/index.js";
import { readCommand, readStatus } from "../../linux/index.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import type { DetachJson } from "../../model/documents/detach_document.js";
import type { DiagnosisJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import { verdictText } from "../../model/documents/verdict_text.js";
import {
  type AttachOptions,
  type AttachResult,
  detachAgent as detach,
  openRecording,
  attachAndRecord as record,
} from "../../record/index.js";
import { evidenceOf } from "../recorded/evidence.js";
import { type AttachProgress, AttachProgressReader } from "./attach_progress.js";

/** With `forMs: "auto"`: the time of the first verdict, the factor to each next one, and the longest recording. */
const FIRST_VERDICT_MS: Millis = 30_000;
const VERDICT_FACTOR = 1.5;
const LONGEST_MS: Millis = 600_000;
/** A verdict of at least this confidence is sure. */
const SURE = 0.9;

interface AttachRequest
  extends Omit<AttachOptions, "forMs" | "enough" | "onWaiting" | "libraryPath"> {
  /** How long to record; "auto": until two verdicts in a row agree, 10 minutes at most. */
  readonly forMs: Millis | "auto";
  /** Called while the process does not run Python code, with its RSS. */
  readonly onWaiting: (doing: string, rssBytes: Bytes) => void;
  /** Called every `progressMs` during the recording. */
  readonly progressMs: Millis;
  readonly onProgress: (progress: AttachProgress) => void;
}

/** Throws TidemarkError if nothing was recorded. */
export function attachAndRecord(request: AttachRequest): Promise<AttachResult> {
  const { forMs, onWaiting, progressMs, onProgress, ...options } = request;
  const progress = new AttachProgressReader(
    options.pid,
    forMs === "auto" ? null : forMs,
    progressMs,
    onProgress,
  );
  const settled =
    forMs === "auto"
      ? verdictIsSettled((verdict) => {
          progress.verdict = verdictText(verdict);
        })
      : null;
  return record({
    ...options,
    ...(forMs === "auto" ? {} : { forMs }),
    async enough(elapsedMs, path) {
      progress.recorded(elapsedMs, path);
      return (await settled?.(elapsedMs, path)) ?? false;
    },
    onWaiting: (doing) => onWaiting(doing, readStatus(options.pid)?.rssBytes ?? 0),
  });
}

/** The command line of a process; empty if it is not readable. */
export function commandOf(pid: Pid): readonly string[] {
  return readCommand(pid) ?? [];
}

/** True once two verdicts in a row are of the same kind and the second is sure; `onVerdict` gets each. */
function verdictIsSettled(
  onVerdict: (verdict: DiagnosisJson["verdict"]) => void,
): (elapsedMs: Millis, recordingPath: string) => Promise<boolean> {
  let due = FIRST_VERDICT_MS;
  let before: VerdictKind | null = null;
  return async (elapsedMs, path) => {
    if (elapsedMs < due) {
      return false;
    }
    due = elapsedMs * VERDICT_FACTOR;
    const { verdict } = diagnose(await evidenceOf(openRecording(path), async () => {}));
    onVerdict(verdict);
    const isSure = verdict.kind !== "insufficient-evidence" && verdict.confidence >= SURE;
    const settled = isSure && verdict.kind === before;
    before = verdict.kind;
    return settled || elapsedMs >= LONGEST_MS;
  };
}

/**
 * Removes the agent's hooks from a process whose recorder crashed. Throws TidemarkError: TM-E039 if the process
 * has no agent, TM-E037 if a recorder is running.
 */
export async function detachAgent(
  pid: Pid,
  options: Parameters<typeof detach>[1],
): Promise<DetachJson> {
  const { recorded, inert, pauseMs } = await detach(pid, options);
  return { schema: "tidemark.detach/1", pid, recorded, inert, pauseMs };
}
