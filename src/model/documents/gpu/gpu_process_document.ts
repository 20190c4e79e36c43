/** `tidemark gpu PID`: what the device allocators of a running program say. */

import type { Bytes, Millis, TimeMs } from "../../base/units.js";
import type { TargetJson } from "../documents.js";
import type { GpuFragmentationJson } from "./gpu_document.js";

export interface GpuProcessDeviceJson {
  framework: "torch" | "jax" | "tensorflow";
  device: number;
  name: string;
  /** Figures are null where the framework or its version does not tell them. `freeBytes` is of the whole
   * device, as the driver has it. */
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
  /** Requests that were served only after cached segments went back to the driver. */
  allocationRetries: number | null;
  outOfMemory: number | null;
  /** As torch counts them: without expandable segments. */
  inactiveSplitBlocks: number | null;
  inactiveSplitBytes: Bytes | null;
  /** Free within segments in use: it cannot go back to the driver. */
  splitBytes: Bytes | null;
  /** In segments without any block in use: given back before an error is raised. */
  cachedBytes: Bytes | null;
  largestFreeBytes: Bytes | null;
  /** splitBytes / reservedBytes: the share that is free and stays cut up. Cache is not in it. */
  fragmentationRatio: number | null;
  fragmentation: GpuFragmentationJson[];
}

/** A tensor of torch's, or an array of JAX's. */
export interface GpuTensorJson {
  device: number;
  /** Of its storage; of JAX's, of the object. */
  address: string;
  /** Of its storage; of an array that lies on several devices, its part on the first of them. */
  bytes: Bytes;
  shape: number[];
  /** "float16"; "" where it could not be read. */
  dtype: string;
  /** Of the object: "torch.nn.parameter.Parameter". */
  type: string;
  /** Tensors of Python that share the storage. */
  views: number;
  /** Who holds it, from the root down. */
  path: string[];
}

/** A pool of key and value blocks that a server takes at its start: how full it is, not how large. */
export interface GpuKvPoolJson {
  /** The class that keeps it: "vllm.v1.core.block_pool.BlockPool". */
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
  /** How long the program stood. */
  pauseMs: Millis;
  rssBytes: Bytes;
  frameworks: {
    name: "torch" | "jax" | "tensorflow";
    version: string;
    /** used: it holds a device. unused: it has not begun to. cpu-only: it cannot. failed: `detail`. */
    state: "used" | "unused" | "cpu-only" | "failed";
    detail: string;
    backend: string;
  }[];
  devices: GpuProcessDeviceJson[];
  /** Page-locked host memory of torch's input queues and copies; null where it does not tell. */
  pinned: { ownedBytes: Bytes | null; activeBytes: Bytes | null } | null;
  /** Storages of 10 MB or more, largest first; null where they could not be looked up. */
  tensors: GpuTensorJson[] | null;
  /** In blocks of that size that no tensor of Python leads to: autograd graphs, libraries. */
  unheldBytes: Bytes | null;
  kvPools: GpuKvPoolJson[];
  /** Where a recording of the program grows, and it marks its steps or its device's memory rises. */
  growth: { device: number; bytesPerStep: Bytes | null; bytesPerHour: number; steps: number }[];
  limits: string[];
}
