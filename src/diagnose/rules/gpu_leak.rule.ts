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

/** Absolute threshold for a device, whatever its size: 10 MB, which is 500 kB per step over 20 steps. */
const LEAST_RISE: Bytes = 10_000_000;
const LEAST_PER_STEP: Bytes = 500_000;

/** Device memory that the program holds rises with each step. */
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
    detail: `${formatBytesBriefly(all)} a step is not freed, over ${first.steps} steps; most of it is allocated by ${frameText(ownFrame(first.stack))}.`,
    deviceSites: growing,
    advice: adviceOf([gradients ? "TM-A107" : "TM-A106"]),
  };
}

/** True if the last failed request would have succeeded without the leaked memory. */
function explainsErrors(
  devices: readonly GpuDeviceJson[],
  growing: readonly GpuGrowthJson[],
): boolean {
  const kept = growing.reduce((sum, { bytes, startBytes }) => sum + bytes - startBytes, 0);
  return devices.some(
    ({ outOfMemory }) => kept >= (outOfMemory.at(-1)?.requestedBytes ?? Infinity),
  );
}

/** A KV cache fills with its sequences; the occupancy of its pool is more informative than its size. */
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
        detail: `Process ${process.process.pid} holds a growing amount of memory on device ${device}: ${formatSlopeBriefly(allocated.slope)}, ${formatBytesBriefly(allocated.level)} now.`,
        growth: allocated,
        advice: adviceOf(["TM-A106"]),
      };
    }
  }
  return watched.length > 0 ? silent("Memory allocated on the device does not grow.") : null;
}

/** Steps were detected, and nothing grew with them. */
function calm(devices: readonly GpuDeviceJson[]): Finding {
  const [seen] = devices.filter(({ stepsFrom }) => stepsFrom !== "");
  return seen === undefined
    ? silent("The trace shows no steps from which growth could be measured.")
    : {
        says: "no leak",
        about: "device",
        kind: "steady",
        weight: 0.6,
        detail: `No site grows with each step on device ${seen.device}; steps were detected by ${seen.stepsFrom}.`,
      };
}
