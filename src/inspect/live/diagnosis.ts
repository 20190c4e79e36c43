/** The verdict on a live process: `tidemark diagnose PID`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { diagnose, type Evidence } from "../../diagnose/index.js";
import { descendantsOf, hasEnded, readInterpreter, readStat } from "../../linux/index.js";
import { formatDuration } from "../../model/base/numbers.js";
import type { Millis, OnProgress, Pid } from "../../model/base/units.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { attachAndRecord, probeProcess, watchProcess } from "../../record/index.js";
import { evidenceOf } from "../recorded/evidence.js";

/** How long to wait for the process to run Python code, so that the agent can enter. */
const LONGEST_WAIT: Millis = 30_000;

interface ProcessDiagnosisOptions {
  /** How long to watch the process. */
  readonly forMs: Millis;
  /** Records with an agent inside the process; false: only reads it from outside. */
  readonly agent: boolean;
  /** At the end, runs gc.collect() and malloc_trim(0) in the process. Needs `agent`. */
  readonly probe: boolean;
  /** Ends the watch early; the verdict then uses the data so far. */
  readonly until: AbortSignal;
  /** Called once, with the reason, if no agent can enter and the process is watched from outside. */
  readonly onRefusal: (reason: string) => void;
}

/** `onProgress` counts seconds. Throws TidemarkError if there is no such process. */
export async function diagnoseProcess(
  pid: Pid,
  options: ProcessDiagnosisOptions,
  onProgress: OnProgress,
): Promise<DiagnosisJson> {
  const gather = options.agent ? underAgent : fromOutside;
  const evidence = await gather(pid, options, onProgress);
  const limit = `The program ended before the ${formatDuration(options.forMs)} of --for had passed.`;
  return diagnose(
    hasEnded(readStat(pid)) ? { ...evidence, limits: [limit, ...evidence.limits] } : evidence,
  );
}

function fromOutside(
  pid: Pid,
  options: ProcessDiagnosisOptions,
  onProgress: OnProgress,
): Promise<Evidence> {
  const { forMs, until } = options;
  const python = readInterpreter(pid)?.version ?? "";
  return watchProcess(pid, { forMs, python, until }, onProgress);
}

/** If no agent can enter, the process is watched from outside, and the verdict's limits give the reason. */
async function underAgent(
  pid: Pid,
  options: ProcessDiagnosisOptions,
  onProgress: OnProgress,
): Promise<Evidence> {
  const { until, forMs } = options;
  const folder = mkdtempSync(join(tmpdir(), "tidemark-diagnose-"));
  try {
    const result = await attachAndRecord({
      pid,
      recordingPath: join(folder, `${pid}.tidemark`),
      waitMs: LONGEST_WAIT,
      until,
      forMs,
      enough: async (elapsedMs) => {
        await onProgress(Math.min(elapsedMs, forMs) / 1000, forMs / 1000);
        return false;
      },
      onLookup() {},
    });
    const evidence = await evidenceOf(result.open(), async () => {});
    return options.probe ? await probed(evidence, pid, until) : evidence;
  } catch (error) {
    if (!(error instanceof TidemarkError) || until.aborted || isOfNoPython(error, pid)) {
      throw error;
    }
    const next = error.id === "TM-E037" ? ` (${error.next})` : "";
    const refusal = `The agent could not be attached: ${error.what}${next}.`;
    await onProgress(0, forMs / 1000);
    let isSaid = false;
    const evidence = await fromOutside(pid, options, (done, of) => {
      if (!isSaid) {
        isSaid = true; // it can be watched: it lives, and is no kernel thread
        options.onRefusal(refusal);
      }
      return onProgress(done, of);
    });
    return { ...evidence, refusal, limits: [refusal, ...evidence.limits] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Neither the process nor one that it started runs Python, so there is nothing to diagnose. */
function isOfNoPython({ id }: TidemarkError, pid: Pid): boolean {
  return id === "TM-E022" && descendantsOf(pid).every((child) => readInterpreter(child) === null);
}

/** Adds the results of a probe, or a limit if the process no longer answers. */
async function probed(evidence: Evidence, pid: Pid, signal: AbortSignal): Promise<Evidence> {
  try {
    return { ...evidence, probe: await probeProcess(pid, { waitMs: LONGEST_WAIT, signal }) };
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    return { ...evidence, limits: [`The probe failed: ${error.what}.`, ...evidence.limits] };
  }
}
