/** Compares the snapshots of a job's ranks: which rank is an outlier, and why. */

import { itemAt } from "../../model/base/columns.js";
import type { Bytes } from "../../model/base/units.js";
import type {
  GpuDeviceJson,
  GpuJson,
  GpuRanksJson,
} from "../../model/documents/gpu/gpu_document.js";
import { isOwnFrame } from "../../model/gpu/gpu_frame_roles.js";
import { onDevices } from "./compare.js";
import { siteKey } from "./sites.js";

/** A rank is an outlier if it differs from the median by this share and by this multiple of the usual distance. */
const ODD_SHARE = 0.05;
const ODD_DISTANCE = 4;

interface Rank {
  readonly file: string;
  readonly device: GpuDeviceJson;
}

/** A difference of one rank from the others, as text and in bytes. */
interface Difference {
  readonly bytes: Bytes;
  readonly why: string;
}

export function compareRanks(documents: readonly GpuJson[]): GpuRanksJson {
  const ranks = documents.flatMap((document) =>
    onDevices(document).map((device) => ({ file: document.file, device })),
  );
  const usual = usualSites(ranks);
  return {
    schema: "tidemark.gpu_ranks/1",
    ranks: ranks.map((rank) => {
      const why = whyOdd(rank, ranks, usual);
      return {
        file: rank.file,
        device: rank.device.device,
        end: rank.device.end,
        peakRequestedBytes: rank.device.peak.requestedBytes,
        highestReservedBytes: rank.device.highestReservedBytes,
        outOfMemory: rank.device.outOfMemory.length,
        odd: why !== "",
        why,
      };
    }),
    limits: [...new Set(documents.flatMap(({ limits }) => limits))],
  };
}

const FIGURES: readonly (readonly [string, (device: GpuDeviceJson) => Bytes])[] = [
  ["requests", ({ peak }) => peak.requestedBytes],
  ["holds at the end", ({ end }) => end.requestedBytes],
  ["reserves", ({ highestReservedBytes }) => highestReservedBytes],
];

function whyOdd(rank: Rank, ranks: readonly Rank[], usual: Map<string, Bytes>): string {
  if (ranks.length < 3) {
    return "";
  }
  for (const [verb, figure] of FIGURES) {
    const middle = median(ranks.map(({ device }) => figure(device)));
    const usualDistance = median(ranks.map(({ device }) => Math.abs(figure(device) - middle)));
    const off = figure(rank.device) - middle;
    if (Math.abs(off) > ODD_SHARE * middle && Math.abs(off) > ODD_DISTANCE * usualDistance) {
      const difference = largestDifference(rank, usual);
      const share = middle === 0 ? "" : ` (${Math.round((100 * Math.abs(off)) / middle)} %)`;
      return `${verb} ${off > 0 ? "more" : "less"} than the others${share}${difference?.why ?? ""}`;
    }
  }
  const others = ranks.filter((one) => one !== rank);
  if (
    rank.device.outOfMemory.length > 0 &&
    others.every(({ device }) => device.outOfMemory.length === 0)
  ) {
    return "the only one that ran out of memory";
  }
  return "";
}

/** Bytes that the median rank has at its peak, by site. */
function usualSites(ranks: readonly Rank[]): Map<string, Bytes> {
  const all = new Map<string, Bytes[]>();
  ranks.forEach(({ device }, row) => {
    for (const { stack, category, bytes } of device.peak.sites) {
      const key = siteKey(stack, category);
      const list = all.get(key) ?? new Array<Bytes>(ranks.length).fill(0);
      list[row] = bytes;
      all.set(key, list);
    }
  });
  return new Map([...all].map(([key, list]) => [key, median(list)]));
}

function largestDifference({ device }: Rank, usual: Map<string, Bytes>): Difference | undefined {
  let largest: Difference | undefined;
  const seen = new Set<string>();
  for (const { stack, category, bytes } of device.peak.sites) {
    const key = siteKey(stack, category);
    seen.add(key);
    const off = bytes - (usual.get(key) ?? 0);
    if (Math.abs(off) > Math.abs(largest?.bytes ?? 0)) {
      largest = { bytes: off, why: `: most of it in ${placeOf(stack)}, ${category}` };
    }
  }
  for (const [key, bytes] of usual) {
    if (!seen.has(key) && bytes > Math.abs(largest?.bytes ?? 0)) {
      const [category, frame] = JSON.parse(key) as [string, [string, string, number] | undefined];
      largest = {
        bytes: -bytes,
        why: `: it lacks ${frame?.[0] ?? "memory without a stack"}, ${category}`,
      };
    }
  }
  return largest;
}

function placeOf(stack: GpuDeviceJson["sites"][number]["stack"]): string {
  const python = stack.find(({ kind }) => kind === "python");
  const frame = stack.find((one) => isOwnFrame(one)) ?? python ?? stack[0];
  return frame === undefined
    ? "memory without a stack"
    : `${frame.function} ${frame.file}:${frame.line}`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? itemAt(sorted, middle)
    : (itemAt(sorted, middle - 1) + itemAt(sorted, middle)) / 2;
}
