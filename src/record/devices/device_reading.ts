/** Reads the figures of a running program's device allocators once, and the tensors that use them. */

import type { RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import {
  countObjects,
  type DeviceTensor,
  findDeviceArrays,
  findDeviceTensors,
  findKvPools,
  type KvPool,
  type ObjectGraph,
  takeGraph,
} from "../../cpython/heap/index.js";
import {
  type FrameworkFigures,
  type LiveArray,
  type LiveSegment,
  parseArrays,
  parseFigures,
  parseSegments,
} from "../../gpu/devices/device_figures.js";
import { openProcessMemory } from "../../linux/index.js";
import type { Bytes, Millis, Objects, Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { firstMessage, openDeviceLine } from "./device_line.js";

/** The thread in the program may have to wait for the allocator, and then walks all its blocks. */
const ANSWER_MS: Millis = 60_000;

interface DeviceReadingOptions {
  /** How long to wait for the program to run Python code, and how long it may be paused to copy its heap. */
  readonly exec: RemoteExecOptions;
  readonly maxPauseMs: Millis;
  readonly maxBytes: Bytes;
  /** Smaller blocks are not looked up. */
  readonly smallestTensorBytes: Bytes;
  /** Also read JAX's own device profile. */
  readonly wantsProfile: boolean;
  readonly onPlan?: (objects: Objects, bytes: Bytes) => void;
}

/** Of torch or of JAX. */
interface LookedUpTensor extends DeviceTensor {
  readonly device: number;
}

export interface DeviceReading {
  readonly frameworks: readonly FrameworkFigures[];
  /** null if torch did not list them. */
  readonly segments: readonly LiveSegment[] | null;
  /** Largest first; null if they were not looked up, for the reason in `tensorsRefused`. */
  readonly tensors: readonly LookedUpTensor[] | null;
  readonly tensorsRefused: string;
  /** Found in the object graph. */
  readonly kvPools: readonly KvPool[];
  /** Blocks of at least the smallest size. */
  readonly largeBlocks: readonly {
    readonly device: number;
    readonly address: number;
    readonly bytes: Bytes;
  }[];
  /** pprof, gzipped. */
  readonly profile: Buffer | null;
  /** Total pause of the program. */
  readonly pauseMs: Millis;
}

/** Throws TidemarkError if the program cannot be queried. */
export async function readDeviceFigures(
  pid: Pid,
  options: DeviceReadingOptions,
): Promise<DeviceReading> {
  const line = await openDeviceLine(
    pid,
    { profile: options.wantsProfile, arrays_from: options.smallestTensorBytes },
    options.exec,
  );
  try {
    const { figures, profile } = await firstMessage(pid, line, {
      key: "figures",
      waitMs: ANSWER_MS,
      until: options.exec.signal,
    });
    const segments = parseSegments(figures);
    const largeBlocks = blocksOf(segments ?? [], options.smallestTensorBytes);
    const tensors = await tensorsOf(pid, options, largeBlocks, parseArrays(figures));
    return {
      frameworks: parseFigures(figures),
      segments,
      largeBlocks,
      ...tensors,
      profile: typeof profile === "string" ? Buffer.from(profile, "base64") : null,
      pauseMs: line.entered.pauseMs + tensors.pauseMs,
    };
  } finally {
    line.close();
  }
}

/** Blocks are adjacent in their segment. */
function blocksOf(segments: readonly LiveSegment[], least: Bytes): DeviceReading["largeBlocks"] {
  return segments.flatMap(({ device, address, blocks }) => {
    let at = address;
    return blocks.flatMap(({ bytes, state }) => {
      const begin = at;
      at += bytes;
      return state === "inactive" || bytes < least ? [] : [{ device, address: begin, bytes }];
    });
  });
}

async function tensorsOf(
  pid: Pid,
  { maxPauseMs, maxBytes, onPlan }: DeviceReadingOptions,
  blocks: DeviceReading["largeBlocks"],
  arrays: readonly LiveArray[],
): Promise<Pick<DeviceReading, "tensors" | "tensorsRefused" | "kvPools" | "pauseMs">> {
  if (blocks.length === 0 && arrays.length === 0) {
    return { tensors: [], tensorsRefused: "", kvPools: [], pauseMs: 0 };
  }
  const memory = openProcessMemory(pid);
  try {
    const { census } = countObjects(memory);
    const expected = census.objects.reduce((sum, count) => sum + count, 0);
    const { objects, pauseMs } = await takeGraph(
      memory,
      { maxPauseMs, maxBytes, ...(onPlan ? { onPlan } : {}) },
      expected,
    );
    return {
      tensors: allTensors(objects, blocks, arrays),
      tensorsRefused: "",
      kvPools: findKvPools(objects),
      pauseMs,
    };
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    return { tensors: null, tensorsRefused: error.what, kvPools: [], pauseMs: 0 };
  } finally {
    memory.close();
  }
}

function allTensors(
  objects: ObjectGraph,
  blocks: DeviceReading["largeBlocks"],
  arrays: readonly LiveArray[],
): LookedUpTensor[] {
  const devices = new Map(blocks.map(({ address, device }) => [address, device]));
  const ofTorch = findDeviceTensors(objects, blocks).map((tensor) => ({
    ...tensor,
    device: devices.get(tensor.address) ?? 0,
  }));
  const ofJax = findDeviceArrays(objects, arrays).map(({ array, ...tensor }) => ({
    ...tensor,
    device: array.device,
  }));
  return [...ofTorch, ...ofJax].sort((a, b) => b.bytes - a.bytes);
}
