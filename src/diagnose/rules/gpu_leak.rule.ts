import { adviceOf } from "../../gpu/analysis/advice.js";
import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { GpuDeviceJson, GpuGrowthJson } from "../../model/documents/gpu/gpu_document.js";
import { ownFrame } from "../../model/documents/own_code.js";
import { snapshotDevices, type WatchedDevice, watchedDevices } from "../causes/devices.js";
import { bytesPerStep } from "../evidence/bytes_per_step.js";
import type { Observations } from "../evidence/observations.js";
import { frameText } from "../wording/words.js";
import { type Finding, type Rule, silent } from "./rule.js";

/** A device's own threshold, whatever its size: 10 MB, and over 20 steps that is what each adds. */
const LEAST_RISE: Bytes = 10_000_000;
const LEAST_PER_STEP: Bytes = 500_000;

/** Device memory that the program holds rises step by step. */
export const gpuLeak: Rule = {
  name: "gpu-leak",
  judge(observations) {
    const devices = snapshotDevices(observations);
    const watched = watchedDevices(observations);
    if (devices.length === 0 && watched.length === 0) {
      return null;
    }
    return bySteps(devices) ?? byHeartbeats(observations, watched) ?? calm(devices);
  },
};

function bySteps(devices: readonly GpuDeviceJson[]): Finding | null {
  const growing = growingSites(devices);
  const [first] = growing;
  if (first === undefined) {
    return null;
  }
  const gradients = growing.every(({ category }) => category === "gradients");
  const all = growing.reduce((sum, { bytesPerStep: each }) => sum + each, 0);
  return {
    says: "leak",
    about: "device",
    kind: "gpu-leak",
    weight: explainsErrors(devices, growing) ? 0.98 : 0.95,
    detail: `${formatBytesBriefly(all)} a step are never freed over ${first.steps} steps; most by ${frameText(ownFrame(first.stack))}.`,
    deviceSites: growing,
    advice: adviceOf([gradients ? "TM-A107" : "TM-A106"]),
  };
}

/** Without what was kept the last request would have been served: whatever else the error looks like. */
function explainsErrors(
  devices: readonly GpuDeviceJson[],
  growing: readonly GpuGrowthJson[],
): boolean {
  const kept = growing.reduce((sum, { bytes, startBytes }) => sum + bytes - startBytes, 0);
  return devices.some(
    ({ outOfMemory }) => kept >= (outOfMemory.at(-1)?.requestedBytes ?? Infinity),
  );
}

/** A cache of keys and values fills with its sequences: its pool's occupancy says more than its size. */
export function growingSites(devices: readonly GpuDeviceJson[]): GpuGrowthJson[] {
  return devices
    .flatMap(({ growth }) => growth)
    .filter(({ category }) => category !== "kv cache")
    .sort((a, b) => b.bytesPerStep - a.bytesPerStep);
}

function byHeartbeats(
  { evidence }: Observations,
  watched: readonly WatchedDevice[],
): Finding | null {
  for (const { growth, device, process } of watched) {
    const allocated = growth("allocatedBytes");
    const perStep = bytesPerStep(evidence, allocated.slope);
    const enough = perStep === null ? allocated.rise >= LEAST_RISE : perStep >= LEAST_PER_STEP;
    if (allocated.shape === "growing" && enough && allocated.rise >= LEAST_RISE) {
      return {
        says: "leak",
        about: "device",
        kind: "gpu-leak",
        weight: 0.96,
        detail: `Process ${process.process.pid} holds more and more of device ${device}: ${formatSlopeBriefly(allocated.slope)}, ${formatBytesBriefly(allocated.level)} now.`,
        growth: allocated,
        advice: adviceOf(["TM-A106"]),
      };
    }
  }
  return watched.length > 0 ? silent("What is allocated on the device does not grow.") : null;
}

/** Steps were seen and nothing grew by them. */
function calm(devices: readonly GpuDeviceJson[]): Finding {
  const [seen] = devices.filter(({ stepsFrom }) => stepsFrom !== "");
  return seen === undefined
    ? silent("The trace shows no steps by which growth could be told.")
    : {
        says: "no leak",
        about: "device",
        kind: "steady",
        weight: 0.6,
        detail: `No site grows step by step on device ${seen.device}; steps were seen by ${seen.stepsFrom}.`,
      };
}
