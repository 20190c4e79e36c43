/** One run of the program under one setting, with the agent beside it for the live bytes. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { importFile, openRecordingAt, summarize } from "../inspect/index.js";
import { LIBRARY_PATH } from "../linux/installation.js";
import type { Bytes, Pid } from "../model/base/units.js";
import type { AllocatorRunJson } from "../model/documents/allocators_document.js";
import { TidemarkError } from "../model/errors/errors.js";
import { environmentOf } from "./apply.js";
import { hasMapped, hasVariables, type ProgramRun, runProgram } from "./program_run.js";
import { findLibrary, type Setting } from "./settings.js";

/** Mean bytes between samples of the agent: coarse, so that it costs next to nothing. */
const PERIOD = "512K";

export interface Trial extends AllocatorRunJson {
  readonly ran: ProgramRun;
}

export interface TrialRequest {
  readonly setting: Setting;
  readonly round: number;
  readonly command: readonly string[];
  readonly until: AbortSignal;
}

export async function runTrial(request: TrialRequest): Promise<Trial> {
  const { setting, round, command, until } = request;
  const folder = mkdtempSync(join(tmpdir(), "tidemark-allocators-"));
  try {
    const pools = join(folder, "pools");
    mkdirSync(pools);
    const variables = environmentOf(setting);
    const environment = { ...process.env, ...variables };
    environment.LD_PRELOAD = [LIBRARY_PATH, environment.LD_PRELOAD].filter(Boolean).join(":");
    environment.TIDEMARK = `period=${PERIOD},dir=${pools}`;
    const ran = await runProgram({
      command,
      environment,
      until,
      proof: proofOf(setting, variables),
    });
    const { peakRssBytes, steadyRssBytes, cpuMs, wallMs } = ran;
    // Python's own mimalloc serves objects without malloc, where the agent does not see them.
    const liveBytes = setting.name === "pymimalloc" ? null : liveBytesOf(pools, folder);
    return { round, peakRssBytes, steadyRssBytes, cpuMs, wallMs, liveBytes, ran };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function proofOf({ library }: Setting, variables: Record<string, string>): (pid: Pid) => boolean {
  const path = library === undefined ? null : findLibrary(library);
  if (path !== null) {
    return (pid) => hasMapped(pid, path);
  }
  const { LD_PRELOAD: _, ...others } = variables;
  return (pid) => hasVariables(pid, others);
}

/** Of all processes, at the peak of each; null if nothing was sampled. */
function liveBytesOf(pools: string, folder: string): Bytes | null {
  let sum: Bytes | null = null;
  for (const name of readdirSync(pools).filter((file) => file.endsWith(".pool"))) {
    const recording = join(folder, `${name}.tidemark`);
    try {
      importFile(join(pools, name), recording, { pid: null, withChildren: false, value: null });
      const { sites } = summarize(openRecordingAt(recording), "end");
      sum = sites.reduce((bytes, site) => bytes + site.liveBytesAtPeak, sum ?? 0);
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      // A process without samples has no profile.
    }
  }
  return sum === null ? null : Math.round(sum);
}
