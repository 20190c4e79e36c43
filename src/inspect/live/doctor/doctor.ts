/** The document of `tidemark doctor`: what works on this machine. */
import { TIDEMARK_VERSION } from "../../../linux/installation.js";
import type { OnProgress, Pid } from "../../../model/base/units.js";
import type { DoctorCheckJson, DoctorJson } from "../../../model/documents/doctor_document.js";
import type { StartPlace } from "../../../record/index.js";
import { deviceCheck } from "./gpu.js";
import { machineChecks, memoryCheck } from "./machine.js";
import { namesakeCheck } from "./namesakes.js";
import { permissionChecks } from "./permissions.js";
import { processChecks } from "./process.js";
import { pythonChecks } from "./pythons.js";
import { trialChecks } from "./trials.js";

const STEPS = 4;

/**
 * Checks this machine, or only the process `pid`. Starts short programs: Python interpreters, and two
 * programs that are recorded and read. `tools`: further checks. `onProgress` counts steps. Throws TM-E020 if there is no such process.
 */
export async function doctorDocument(
  pid: Pid | null,
  tools: () => DoctorCheckJson[],
  onProgress: OnProgress,
): Promise<DoctorJson> {
  const checks = pid === null ? await checkMachine(tools, onProgress) : processChecks(pid);
  return {
    schema: "tidemark.doctor/1",
    version: TIDEMARK_VERSION,
    atMs: Date.now(),
    ...(pid === null ? {} : { pid }),
    ready: checks.every(({ state }) => state !== "missing"),
    checks,
  };
}

async function checkMachine(
  tools: () => DoctorCheckJson[],
  onProgress: OnProgress,
): Promise<DoctorCheckJson[]> {
  const place: StartPlace = { cwd: process.cwd(), environment: process.env };
  await onProgress(0, STEPS);
  const machine = machineChecks();
  const { checks, chosen } = await pythonChecks(place);
  await onProgress(1, STEPS);
  const device = await deviceCheck();
  await onProgress(2, STEPS);
  const works = machine.every(({ state }) => state !== "missing");
  const trials = chosen !== null && works ? await trialChecks(chosen) : [];
  await onProgress(STEPS, STEPS);
  return sorted([
    ...machine,
    ...tools(),
    namesakeCheck(place),
    ...trials,
    ...permissionChecks(),
    memoryCheck(process.pid, "memory"),
    ...checks,
    device,
  ]);
}

const AREAS: readonly DoctorCheckJson["area"][] = [
  "machine",
  "installation",
  "permissions",
  "memory",
  "python",
  "gpu",
  "process",
];

function sorted(checks: readonly DoctorCheckJson[]): DoctorCheckJson[] {
  return [...checks].sort((a, b) => AREAS.indexOf(a.area) - AREAS.indexOf(b.area));
}
