/**
 * Devices by name: their memory, and what a process takes before its first tensor.
 *
 * `memoryBytes` is what the driver lets a process use (nvidia-smi's total without the firmware's share).
 * `contextBytes` is the CUDA context with the kernels that a training step loads lazily, as CUDA does from 11.7 on: it grows
 * with the number of multiprocessors, 135 MiB on a T4 (40), about 750 MiB on an H100 or H200 (132).
 */
import type { Bytes } from "../../model/base/units.js";

export interface Gpu {
  readonly name: string;
  readonly memoryBytes: Bytes;
  readonly contextBytes: Bytes;
  /** The libraries' workspaces for matrix products of one thread, which lie in the caching allocator. */
  readonly workspaceBytes: Bytes;
  /** `contextBytes` was measured on the user's machine. */
  readonly contextMeasured?: boolean;
  /** CUDA's compute capability, which decides what kernels a library has. */
  readonly capability: number;
  /** No kernels of FlashAttention-2, nor bf16. */
  readonly old: boolean;
  /** Runs HIP, whose libraries have names of their own. */
  readonly isAmd?: true;
  /** torch's kernels for the CPU run, on which bench/plan.mjs and the tests compare saved tensors. */
  readonly isCpu?: boolean;
  /** Of a device given by its size: the device whose other properties are assumed. */
  readonly like?: string;
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** cuBLAS: 8.125 MiB, 32 MiB on Hopper; cuBLASLt: 1 MiB. */
const AMPERE_WORKSPACE = 9.125 * MIB;
const HOPPER_WORKSPACE = 33 * MIB;
/** parseChosenWorkspaceSize of torch (CublasHandlePool.cpp): hipBLAS on gfx94. */
const MI300_WORKSPACE = 128 * MIB;
const AMPERE = 8;
const HOPPER = 9;

function gpu(name: string, memoryGib: number, contextMib: number, capability: number): Gpu {
  return {
    name,
    memoryBytes: Math.round(memoryGib * GIB),
    contextBytes: contextMib * MIB,
    workspaceBytes: capability >= HOPPER ? HOPPER_WORKSPACE : AMPERE_WORKSPACE,
    capability,
    old: capability < AMPERE,
  };
}

/** The largest last, within each kind. */
export const GPUS: readonly Gpu[] = [
  gpu("T4", 14.6, 135, 7.5),
  // With CUDA 12, whose kernels load lazily; 1,343 MiB with CUDA before 11.7 (transformers, model_memory_anatomy). Between a T4
  // and an A100 by its 80 multiprocessors.
  gpu("V100-16GB", 15.8, 300, 7),
  gpu("V100-32GB", 31.7, 300, 7),
  gpu("RTX 3060", 11.7, 250, 8.6),
  gpu("RTX 3090", 23.6, 330, 8.6),
  gpu("RTX 4070", 11.6, 250, 8.9),
  gpu("RTX 4080", 15.6, 330, 8.9),
  gpu("RTX 4090", 23.5, 420, 8.9),
  gpu("RTX 5090", 31.4, 480, 12),
  gpu("A10", 22.0, 300, 8.6),
  gpu("A10G", 22.0, 330, 8.6),
  gpu("L4", 22.0, 250, 8.9),
  gpu("A6000", 47.4, 350, 8.6),
  gpu("L40S", 44.4, 420, 8.9),
  gpu("RTX 6000 Ada", 47.4, 420, 8.9),
  gpu("A100-40GB", 39.4, 420, 8),
  gpu("A100-80GB", 79.2, 420, 8),
  // Measured on an H200 with CUDA 13.0: 621 MiB after the first tensor, 697 after a prefill, 751 to 767 after a training step.
  gpu("H100-80GB", 79.1, 750, 9),
  gpu("H100-96GB", 94.5, 750, 9),
  gpu("H20", 95.1, 500, 9),
  gpu("RTX PRO 6000", 94.9, 550, 12),
  gpu("H200", 139.8, 750, 9),
  gpu("B200", 178.3, 620, 10),
  { ...gpu("MI300X", 191.0, 450, 9.4), workspaceBytes: MI300_WORKSPACE, isAmd: true },
];

/** The memory size that is meant by a name that has several. */
const SHORT: Readonly<Record<string, string>> = {
  a100: "A100-80GB",
  h100: "H100-80GB",
  v100: "V100-16GB",
  // The same chips beside another CPU.
  gh200: "H100-96GB",
  t4g: "T4",
  "4090": "RTX 4090",
  "3090": "RTX 3090",
  "5090": "RTX 5090",
};

/** A device by its name ("h100", "a100-40gb", "4090"); undefined if no device has that name. */
export function gpuNamed(text: string): Gpu | undefined {
  const wanted = plain(SHORT[plain(text)] ?? text);
  return (
    GPUS.find(({ name }) => plain(name) === wanted) ??
    GPUS.find(({ name }) => plain(name) === `${wanted}gb`)
  );
}

/** Names that begin with `text`: what a part of a name may mean. */
export function gpusLike(text: string): string[] {
  const wanted = plain(text);
  const begins = (name: string): boolean =>
    wanted === ""
      ? name.toLowerCase().startsWith(text.trim().toLowerCase())
      : plain(name).startsWith(wanted);
  return text.trim() === "" ? [] : GPUS.map(({ name }) => name).filter(begins);
}

function plain(name: string): string {
  return name.toLowerCase().replace(/rtx|nvidia|geforce|[\s_-]/g, "");
}

/** Whether FlashAttention has kernels for it: from Ampere on, in 16 bits. */
export function supportsFlash({
  gpu,
  dtype,
}: {
  readonly gpu: Gpu;
  readonly dtype: "bf16" | "fp16" | "fp32";
}): boolean {
  return !gpu.old && dtype !== "fp32";
}

/** A device of which only the size is known. */
export function gpuOfSize(memoryBytes: Bytes): Gpu {
  const recent = GPUS.filter(({ old }) => !old).sort((a, b) => a.memoryBytes - b.memoryBytes);
  const near = recent.find((each) => each.memoryBytes * 1.08 >= memoryBytes) ?? USUAL_GPU;
  return { ...near, name: "", memoryBytes, like: near.name };
}

/** "A10 has compute capability 8.6", or of which device it is assumed. */
export function capabilityWords({ name, capability, like }: Gpu): string {
  const words = `compute capability ${capability.toFixed(1)}`;
  return name === ""
    ? `a device of this size is assumed to have that of ${like}, ${words}`
    : `${name} has ${words}`;
}

/** The default device. */
export const USUAL_GPU: Gpu = GPUS.find(({ name }) => name === "A100-80GB") as Gpu;
