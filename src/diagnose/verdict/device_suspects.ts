/** Sites of device memory as suspects; their growth is counted per step. */

import type { Pid } from "../../model/base/units.js";
import type { DiagnosisJson, SuspectJson } from "../../model/documents/diagnosis_document.js";
import type { GpuGrowthJson } from "../../model/documents/gpu/gpu_document.js";
import type { Finding } from "../rules/rule.js";

const MOST_SUSPECTS = 10;

export function deviceSuspects(pid: Pid, { deviceSites, advice }: Finding): SuspectJson[] {
  const sites = deviceSites ?? [];
  const all = sites.reduce((sum, { bytesPerStep }) => sum + bytesPerStep, 0);
  return sites.slice(0, MOST_SUSPECTS).map(({ bytesPerStep, bytes, stack }, at) => ({
    rank: at + 1,
    share: all > 0 ? bytesPerStep / all : 0,
    liveBytes: bytes,
    growthBytesPerHour: 0,
    growthBytesPerStep: bytesPerStep,
    stack: [...stack],
    domain: "device",
    pid,
    ages: [],
    history: [],
    advice: [...(advice ?? [])],
  }));
}

/** A snapshot's trace counts steps, not hours. */
export function deviceGrowth(sites: readonly GpuGrowthJson[]): DiagnosisJson["growth"] {
  return {
    bytesPerHour: 0,
    low: 0,
    high: 0,
    limitBytes: 0,
    msToLimit: 0,
    bytesPerStep: sites.reduce((sum, { bytesPerStep }) => sum + bytesPerStep, 0),
  };
}
