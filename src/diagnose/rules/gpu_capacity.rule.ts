import { adviceOf } from "../../gpu/analysis/advice.js";
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { GpuDeviceJson } from "../../model/documents/gpu/gpu_document.js";
import { savingAdvice } from "../causes/device_savings.js";
import { snapshotDevices, trouble, type WatchedDevice, watchedDevices } from "../causes/devices.js";
import { type Finding, type Rule, silent } from "./rule.js";

/** Share of the device memory that the job itself must hold for capacity to be the cause. */
const FULL_SHARE = 0.8;

/** The job needs more memory than the device has. This rule comes after the others, because a leak fills any device. */
export const gpuCapacity: Rule = {
  name: "gpu-capacity",
  judge(observations) {
    const devices = snapshotDevices(observations);
    const watched = watchedDevices(observations);
    if (devices.length === 0 && watched.length === 0) {
      return null;
    }
    for (const device of devices) {
      const finding = bySnapshot(device);
      if (finding !== null) {
        return finding;
      }
    }
    for (const device of watched) {
      const finding = byHeartbeats(device);
      if (finding !== null) {
        return finding;
      }
    }
    return silent("No request failed only because the device was full.");
  },
};

function bySnapshot(device: GpuDeviceJson): Finding | null {
  const event = device.outOfMemory.at(-1);
  return event?.kind !== "genuine"
    ? null
    : {
        says: "leak",
        about: "device",
        kind: "gpu-capacity",
        weight: 0.9,
        detail: `A request of ${formatBytesBriefly(event.requestedBytes)} failed on device ${device.device} with ${formatBytesBriefly(event.liveBytes)} in use, ${formatBytesBriefly(event.freeInSegmentsBytes)} free in segments and ${formatBytesBriefly(event.deviceFreeBytes)} free on the device.`,
        advice: savingAdvice(device),
      };
}

function byHeartbeats(device: WatchedDevice): Finding | null {
  const total = device.last("totalBytes");
  const peak = device.last("peakAllocatedBytes") ?? device.last("allocatedBytes");
  const { errors } = trouble(device);
  return total === null || peak === null || errors === 0 || peak < FULL_SHARE * total
    ? null
    : {
        says: "leak",
        about: "device",
        kind: "gpu-capacity",
        weight: 0.85,
        detail: `The program held ${formatBytesBriefly(peak)} of the ${formatBytesBriefly(total)} of device ${device.device} and requested more; ${errors} requests failed.`,
        advice: adviceOf(["TM-A115", "TM-A104"]),
      };
}
