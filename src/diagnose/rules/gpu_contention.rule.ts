import { adviceOf } from "../../gpu/analysis/advice.js";
import { formatBytesBriefly, formatShare } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { GpuDeviceJson } from "../../model/documents/gpu/gpu_document.js";
import {
  othersBytes,
  snapshotDevices,
  trouble,
  type WatchedDevice,
  watchedDevices,
} from "../causes/devices.js";
import { type Finding, type Rule, silent } from "./rule.js";

/** Share of a device. A context and its libraries use less. */
const NOTABLE_SHARE = 0.1;
const LARGEST_CONTEXT: Bytes = 1.5 * 2 ** 30;

/** Other processes hold the memory that the program needed. */
export const gpuContention: Rule = {
  name: "gpu-contention",
  judge(observations) {
    const devices = snapshotDevices(observations);
    const watched = watchedDevices(observations);
    if (devices.length === 0 && watched.length === 0) {
      return null;
    }
    for (const device of watched) {
      const finding = byHeartbeats(device);
      if (finding !== null) {
        return finding;
      }
    }
    for (const device of devices) {
      const finding = bySnapshot(device);
      if (finding !== null) {
        return finding;
      }
    }
    return silent("No other process holds the memory that this one needed.");
  },
};

function contention(weight: number, detail: string): Finding {
  return {
    says: "leak",
    about: "device",
    kind: "gpu-contention",
    weight,
    detail,
    advice: adviceOf(["TM-A108", "TM-A109"]),
  };
}

function byHeartbeats(device: WatchedDevice): Finding | null {
  const others = othersBytes(device);
  const total = device.last("totalBytes");
  const { errors, retries } = trouble(device);
  if (
    others === null ||
    total === null ||
    errors + retries === 0 ||
    others < Math.max(NOTABLE_SHARE * total, LARGEST_CONTEXT) ||
    others < (device.last("splitBytes") ?? 0)
  ) {
    return null;
  }
  return contention(
    0.92,
    `${formatBytesBriefly(others)} of device ${device.device}, ${formatShare(others / total)}, are held by other processes or libraries, with ${errors} out-of-memory errors and ${retries} retries here.`,
  );
}

/**
 * A snapshot does not contain the device's size, but it shows if the program once reserved more than is
 * available now.
 */
function bySnapshot({ device, outOfMemory, highestReservedBytes }: GpuDeviceJson): Finding | null {
  const event = outOfMemory.at(-1);
  const within = event === undefined ? 0 : event.reservedBytes + event.deviceFreeBytes;
  const lost = highestReservedBytes - within;
  return event === undefined ||
    event.kind === "fragmentation" ||
    lost < NOTABLE_SHARE * highestReservedBytes ||
    highestReservedBytes < event.liveBytes + event.requestedBytes
    ? null
    : contention(
        0.96,
        `A request of ${formatBytesBriefly(event.requestedBytes)} failed on device ${device} with ${formatBytesBriefly(within)} available, and the program had held ${formatBytesBriefly(highestReservedBytes)} earlier: another process took ${formatBytesBriefly(lost)}.`,
      );
}
