import { formatBytesBriefly, formatShare } from "../../model/base/numbers.js";
import type { GpuDeviceJson } from "../../model/documents/gpu/gpu_document.js";
import {
  deviceAdvice,
  snapshotDevices,
  trouble,
  type WatchedDevice,
  watchedDevices,
} from "../causes/devices.js";
import { type Finding, type Rule, silent } from "./rule.js";

/**
 * Shares of reserved memory that are free inside segments in use: the least after an error, and the least after
 * retries alone. Cached segments do not count, because PyTorch releases them before it raises.
 */
const SPLIT_AT_ERROR = 0.1;
const SPLIT_AT_RETRIES = 0.25;
const FEWEST_RETRIES = 2;

/** Enough memory is free on the device, but in pieces that are too small. */
export const gpuFragmentation: Rule = {
  name: "gpu-fragmentation",
  judge(observations) {
    const devices = snapshotDevices(observations);
    const watched = watchedDevices(observations);
    if (devices.length === 0 && watched.length === 0) {
      return null;
    }
    const found =
      first(devices, byError) ?? first(watched, byHeartbeats) ?? first(devices, byRetries);
    return found === null
      ? silent("No request failed while enough memory was free in smaller pieces.")
      : { ...found, advice: deviceAdvice(observations, ["TM-A101", "TM-A103"]) };
  },
};

function first<Item>(items: readonly Item[], judge: (item: Item) => Finding | null) {
  for (const item of items) {
    const finding = judge(item);
    if (finding !== null) {
      return finding;
    }
  }
  return null;
}

function fragmented(weight: number, detail: string): Finding {
  return {
    says: "leak",
    about: "device",
    kind: "gpu-fragmentation",
    weight,
    detail,
  };
}

function byError({ device, outOfMemory }: GpuDeviceJson): Finding | null {
  const event = outOfMemory.findLast(({ kind }) => kind === "fragmentation");
  return event === undefined
    ? null
    : fragmented(
        0.97,
        `A request of ${formatBytesBriefly(event.requestedBytes)} failed on device ${device} while ${formatBytesBriefly(event.freeInSegmentsBytes)} were free in pieces, the largest of ${formatBytesBriefly(event.largestFreeBytes)}.`,
      );
}

function byRetries({ device, cacheReleases, waste, end }: GpuDeviceJson): Finding | null {
  const share = end.reservedBytes === 0 ? 0 : waste.splitBytes / end.reservedBytes;
  return cacheReleases.beforeRequest < FEWEST_RETRIES || share < SPLIT_AT_RETRIES
    ? null
    : fragmented(
        0.7,
        `${formatBytesBriefly(waste.splitBytes)} of device ${device}, ${formatShare(share)} of what is reserved, are free between blocks in use, and the allocator emptied its cache ${cacheReleases.beforeRequest} times to find room.`,
      );
}

function byHeartbeats(device: WatchedDevice): Finding | null {
  const ratio = device.last("fragmentationRatio");
  const split = device.last("splitBytes");
  const { errors, retries } = trouble(device);
  const enough =
    (errors > 0 && (ratio ?? 0) >= SPLIT_AT_ERROR) ||
    (retries >= FEWEST_RETRIES && (ratio ?? 0) >= SPLIT_AT_RETRIES);
  return !enough || ratio === null || split === null
    ? null
    : fragmented(
        errors > 0 ? 0.9 : 0.75,
        `${formatBytesBriefly(split)} of device ${device.device}, ${formatShare(ratio)} of what is reserved, are free between blocks in use, with ${errors} out-of-memory errors and ${retries} retries.`,
      );
}
