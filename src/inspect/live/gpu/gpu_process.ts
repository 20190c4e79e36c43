/** The document of `tidemark gpu PID`: the devices of a running program. */
import { freemem } from "node:os";
import { endOfLive } from "../../../gpu/analysis/live_segments.js";
import {
  type DeviceFigures,
  type FrameworkFigures,
  fragmentationRatio,
} from "../../../gpu/devices/device_figures.js";
import {
  readCommand,
  readInterpreter,
  readStat,
  readStatus,
  startTimeMs,
} from "../../../linux/index.js";
import type { Bytes, Millis, Pid } from "../../../model/base/units.js";
import type {
  GpuProcessDeviceJson,
  GpuProcessJson,
  GpuTensorJson,
} from "../../../model/documents/gpu/gpu_process_document.js";
import { type DeviceReading, growthOfDevices, readDeviceFigures } from "../../../record/index.js";
import { unusedText } from "./gpu_framework_state.js";

/** Smaller ones are included only in the allocator's totals. */
const SMALLEST_TENSOR: Bytes = 10_000_000;
/** Share of free memory on this machine that the object graph may use. */
const FREE_SHARE = 0.7;

interface GpuProcessRequest {
  readonly pid: Pid;
  readonly exec: EntryOptions;
  readonly maxPauseMs: Millis;
  readonly wantsProfile: boolean;
}

/** How to enter a process. @internal */
export interface EntryOptions {
  /** How long to wait for it to run Python code. */
  readonly waitMs: Millis;
  /** Ends the wait and undoes everything. */
  readonly signal: AbortSignal;
  readonly onWaiting: (doing: string) => void;
}

export async function gpuProcessDocument(
  request: GpuProcessRequest,
): Promise<{ readonly document: GpuProcessJson; readonly profile: Buffer | null }> {
  const { pid, exec } = request;
  const snapshot = await readDeviceFigures(pid, {
    exec,
    maxPauseMs: request.maxPauseMs,
    maxBytes: freemem() * FREE_SHARE,
    smallestTensorBytes: SMALLEST_TENSOR,
    wantsProfile: request.wantsProfile,
  });
  return { document: documentOf(pid, snapshot), profile: snapshot.profile };
}

function documentOf(pid: Pid, snapshot: DeviceReading): GpuProcessJson {
  const { frameworks, largeBlocks } = snapshot;
  const tensors = snapshot.tensors?.map((tensor): GpuTensorJson => {
    const { address, path, shape, ...rest } = tensor;
    return {
      ...rest,
      address: `0x${address.toString(16)}`,
      shape: [...shape],
      path: [...path],
    };
  });
  const held = new Set(tensors?.map(({ address }) => address));
  const unheld = largeBlocks.filter(({ address }) => !held.has(`0x${address.toString(16)}`));
  return {
    schema: "tidemark.gpu_process/1",
    target: {
      pid,
      command: readCommand(pid) ?? [],
      python: readInterpreter(pid)?.version ?? "",
      startedMs: startTimeMs(readStat(pid)?.startTicks ?? 0),
    },
    atMs: Date.now(),
    pauseMs: snapshot.pauseMs,
    rssBytes: readStatus(pid)?.rssBytes ?? 0,
    frameworks: frameworks.map(({ name, version, state, detail, backend }) => ({
      name,
      version,
      state,
      detail,
      backend,
    })),
    devices: frameworks.flatMap(({ name, devices }) =>
      devices.map((device) => deviceOf(name, device, snapshot)),
    ),
    pinned: frameworks.find(({ name }) => name === "torch")?.pinned ?? null,
    tensors: tensors ?? null,
    unheldBytes: tensors === undefined ? null : unheld.reduce((sum, { bytes }) => sum + bytes, 0),
    kvPools: snapshot.kvPools.map(({ path, ...pool }) => ({ ...pool, path: [...path] })),
    growth: growthOfDevices(pid),
    limits: limitsOf(snapshot),
  };
}

function deviceOf(
  framework: FrameworkFigures["name"],
  { index, name, splitBytes, ...figures }: DeviceFigures,
  { segments }: DeviceReading,
): GpuProcessDeviceJson {
  const end = framework === "torch" && segments !== null ? endOfLive(segments, index) : null;
  const { totalBytes, freeBytes, reservedBytes } = figures;
  const split = end?.waste.splitBytes ?? splitBytes;
  return {
    framework,
    device: index,
    name,
    ...figures,
    othersBytes:
      totalBytes === null || freeBytes === null || reservedBytes === null
        ? null
        : Math.max(0, totalBytes - freeBytes - reservedBytes),
    splitBytes: split,
    cachedBytes: end?.waste.cachedBytes ?? null,
    largestFreeBytes: end?.largestFreeBytes ?? figures.largestFreeBytes,
    fragmentationRatio: fragmentationRatio({ splitBytes: split, reservedBytes }),
    fragmentation: end?.fragmentation ?? [],
  };
}

function limitsOf({ frameworks, tensorsRefused }: DeviceReading): string[] {
  const limits = frameworks.filter(({ state }) => state !== "used").map(unusedText);
  if (frameworks.length === 0) {
    limits.push("the program has not loaded torch, JAX or TensorFlow");
  }
  if (tensorsRefused !== "") {
    limits.push(`tensors were not looked up: ${tensorsRefused}`);
  }
  const devices = frameworks.flatMap((framework) => framework.devices);
  if (devices.some(({ freeBytes }) => freeBytes === null)) {
    limits.push("memory held by other processes is not visible from this one: tidemark gpu top");
  }
  return limits;
}
