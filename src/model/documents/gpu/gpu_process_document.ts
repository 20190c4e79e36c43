/** `tidemark gpu PID`: the device allocators of a running program. */

import type { Bytes, Millis, TimeMs } from "../../base/units.js";
import type { TargetJson } from "../documents.js";
import type { GpuFragmentationJson } from "./gpu_document.js";

export interface GpuProcessDeviceJson {
  framework: "torch" | "jax" | "tensorflow";
  /** -1: TensorFlow's allocator of host memory. */
  device: number;
  name: string;
  /**
   * Figures are null if the framework or its version does not report them. `freeBytes` is the driver's figure
   * for the whole device.
   */
  totalBytes: Bytes | null;
  freeBytes: Bytes | null;
  reservedBytes: Bytes | null;
  allocatedBytes: Bytes | null;
  activeBytes: Bytes | null;
  requestedBytes: Bytes | null;
  peakReservedBytes: Bytes | null;
  peakAllocatedBytes: Bytes | null;
  /** total - free - reserved: other processes, the CUDA context, NCCL and other libraries. */
  othersBytes: Bytes | null;
  /** Requests that succeeded only after cached segments were returned to the driver. */
  allocationRetries: number | null;
  outOfMemory: number | null;
  /** As counted by torch: without expandable segments. */
  inactiveSplitBlocks: number | null;
  inactiveSplitBytes: Bytes | null;
  /** Free inside segments in use; cannot be returned to the driver. */
  splitBytes: Bytes | null;
  /** In segments without blocks in use; released before an error is raised. */
  cachedBytes: Bytes | null;
  largestFreeBytes: Bytes | null;
  /** splitBytes / reservedBytes: the share that is free but fragmented, without cached segments. */
  fragmentationRatio: number | null;
  fragmentation: GpuFragmentationJson[];
}

/** A torch tensor or a JAX array. */
export interface GpuTensorJson {
  device: number;
  /** Address of its storage; for JAX, of the object. */
  address: string;
  /** Size of its storage; for an array on several devices, its part on the first. */
  bytes: Bytes;
  shape: number[];
  /** "float16"; "" if it could not be read. */
  dtype: string;
  /** Type of the object: "torch.nn.parameter.Parameter". */
  type: string;
  /** Python tensors that share the storage. */
  views: number;
  /** Its holder, from the root down. */
  path: string[];
}

/** A pool of key and value blocks that a server reserves at start-up: its occupancy, not its size. */
export interface GpuKvPoolJson {
  /** The class that holds it: "vllm.v1.core.block_pool.BlockPool". */
  type: string;
  path: string[];
  blocks: number;
  freeBlocks: number;
  /** 0 to 1. */
  occupancy: number;
}

/** `tidemark.gpu_process/1` */
export interface GpuProcessJson {
  schema: "tidemark.gpu_process/1";
  target: TargetJson;
  atMs: TimeMs;
  /** Pause of the program. */
  pauseMs: Millis;
  rssBytes: Bytes;
  frameworks: {
    name: "torch" | "jax" | "tensorflow";
    version: string;
    /** used: it uses a device. unused: it does not use one yet. cpu-only: it cannot. failed: see `detail`. */
    state: "used" | "unused" | "cpu-only" | "failed";
    detail: string;
    backend: string;
  }[];
  devices: GpuProcessDeviceJson[];
  /** Page-locked host memory of torch's input queues and copies; null if not reported. */
  pinned: { ownedBytes: Bytes | null; activeBytes: Bytes | null } | null;
  /** Storages of 10 MB or more, largest first; null if they could not be looked up. */
  tensors: GpuTensorJson[] | null;
  /** In blocks of that size that no Python tensor refers to: autograd graphs, libraries. */
  unheldBytes: Bytes | null;
  kvPools: GpuKvPoolJson[];
  /** Set if a recording of the program is in progress, and it marks steps or its device memory rises. */
  growth: { device: number; bytesPerStep: Bytes | null; bytesPerHour: number; steps: number }[];
  limits: string[];
}
