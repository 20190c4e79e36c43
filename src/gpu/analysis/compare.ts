/** Compares two snapshots: what appeared, grew, shrank and disappeared between their ends. */
import type {
  GpuDeviceJson,
  GpuDiffJson,
  GpuDiffSiteJson,
  GpuJson,
  GpuTotalsJson,
} from "../../model/documents/gpu/gpu_document.js";
import { HOST_MEMORY } from "../../model/gpu/gpu_snapshot.js";
import { siteKey } from "./sites.js";

export function compareSnapshots(a: GpuJson, b: GpuJson): GpuDiffJson {
  const joined = new Map<string, GpuDiffSiteJson>();
  for (const [side, document] of [
    ["bytesA", a],
    ["bytesB", b],
  ] as const) {
    for (const { stack, category, bytes } of onDevices(document).flatMap(
      (device) => device.sites,
    )) {
      const key = siteKey(stack, category);
      const site = joined.get(key) ?? emptySite(stack, category);
      site[side] += bytes;
      joined.set(key, site);
    }
  }
  const sites = [...joined.values()];
  for (const site of sites) {
    site.growthBytes = site.bytesB - site.bytesA;
    site.change = changeOf(site);
  }
  sites.sort((x, y) => y.growthBytes - x.growthBytes);
  return {
    schema: "tidemark.gpu_diff/1",
    a: sideOf(a),
    b: sideOf(b),
    sites,
    limits: [...new Set([...a.limits, ...b.limits])],
  };
}

function emptySite(
  stack: GpuDiffSiteJson["stack"],
  category: GpuDiffSiteJson["category"],
): GpuDiffSiteJson {
  return { stack, category, bytesA: 0, bytesB: 0, growthBytes: 0, change: "same" };
}

function changeOf({ bytesA, bytesB }: GpuDiffSiteJson): GpuDiffSiteJson["change"] {
  if (bytesA === bytesB) {
    return "same";
  }
  if (bytesA === 0) {
    return "appeared";
  }
  if (bytesB === 0) {
    return "went";
  }
  return bytesB > bytesA ? "grew" : "shrank";
}

/** Without pinned host memory, which uses no device memory. */
export function onDevices({ devices }: GpuJson): GpuDeviceJson[] {
  return devices.filter(({ device }) => device !== HOST_MEMORY);
}

function sideOf(document: GpuJson): GpuDiffJson["a"] {
  const devices = onDevices(document);
  const { file } = document;
  return {
    file,
    end: sumOf(devices.map(({ end }) => end)),
    peakRequestedBytes: devices.reduce((sum, { peak }) => sum + peak.requestedBytes, 0),
  };
}

function sumOf(totals: readonly GpuTotalsJson[]): GpuTotalsJson {
  const sum = { reservedBytes: 0, allocatedBytes: 0, activeBytes: 0, requestedBytes: 0 };
  for (const total of totals) {
    for (const key of Object.keys(sum) as (keyof GpuTotalsJson)[]) {
      sum[key] += total[key];
    }
  }
  return sum;
}
