/** The check of one run: its recording against the gates. */
import type { Recording } from "../inspect/index.js";
import type { OnProgress } from "../model/base/units.js";
import type { CheckJson } from "../model/documents/check_document.js";
import { commandText, formatBaseline } from "./baseline.js";
import { type Gates, judge } from "./judge.js";
import { measure } from "./measured.js";

export interface Checked {
  readonly document: CheckJson;
  /** What `--save-baseline` writes. */
  readonly baseline: string;
  /** Notes about the comparison. */
  readonly remarks: readonly string[];
}

/** `onProgress` counts profiles. Throws TidemarkError if the recording is damaged. */
export async function checkRecording(
  recording: Recording,
  { gates, exitCode }: { readonly gates: Gates; readonly exitCode: number },
  onProgress: OnProgress,
): Promise<Checked> {
  const measured = await measure(recording, onProgress);
  const { target, window, limits } = measured.summary;
  const judged = judge(gates, measured);
  const remarks = otherCommand(gates, target.command);
  return {
    document: {
      schema: "tidemark.check/1",
      target,
      window,
      exitCode,
      passed: judged.every(({ passed }) => passed),
      gates: judged,
      suspects: measured.diagnosis.suspects,
      recording: recording.path,
      durationMs: measured.durationMs,
      limits: [...limits, ...remarks],
    },
    baseline: formatBaseline(measured),
    remarks,
  };
}

/** A baseline of another command is still compared, because only a path may have changed. */
function otherCommand({ baseline }: Gates, command: readonly string[]): string[] {
  const saved = baseline?.command;
  return saved === undefined || saved === commandText(command)
    ? []
    : [`The baseline is that of another command: ${saved}`];
}
