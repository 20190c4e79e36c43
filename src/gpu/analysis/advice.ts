/** The catalogue of advice for devices: ids are stable, TM-A101 to TM-A199. */
import type { GpuAdviceJson } from "../../model/documents/gpu/gpu_document.js";

export const GPU_ADVICE = {
  "TM-A101":
    "Set {conf}=expandable_segments:True: segments then grow in place, and free memory is not cut up by their borders.",
  "TM-A102":
    "If expandable segments are not to be had: {conf}=max_split_size_mb:N with N above the usual tensor, as the last resort; it makes large requests slower.",
  "TM-A103":
    "Sizes differ a little from step to step: {conf}=roundup_power2_divisions:4 lets blocks be used again, or pad the input to a few lengths.",
  "TM-A104":
    "Activations make the peak: torch.utils.checkpoint on the largest blocks, a smaller batch with gradient accumulation, or bf16 autocast.",
  "TM-A105": "Optimizer state is large: an 8-bit optimizer, or ZeRO/FSDP sharding over the ranks.",
  "TM-A106":
    "Something keeps a tensor of each step: take .item() or .detach() of what is logged or collected, and drop the list that holds it.",
  "TM-A107":
    "Gradients stay between steps: optimizer.zero_grad(set_to_none=True) right after the step.",
  "TM-A108":
    "Another process holds a part of the device: give each its own (CUDA_VISIBLE_DEVICES), or end the one that is left over (nvidia-smi names it).",
  "TM-A109":
    "Much is held outside of PyTorch's allocator: CUDA context, NCCL buffers, other libraries. Fewer processes a device and NCCL_BUFFSIZE reduce it.",
  "TM-A110":
    "Rounding takes much: many allocations are far below 512 bytes or just above a step of the setting; keep small tensors in one.",
  "TM-A111":
    "The cached segments are no fault: PyTorch gives them back before it raises. Only another process gains by torch.cuda.empty_cache().",
  "TM-A112":
    "The KV cache is large: fewer or shorter sequences at once, a quantised cache, or a paged one (gpu_memory_utilization in vLLM).",
  "TM-A113":
    "The trace lost its beginning: record more with torch.cuda.memory._record_memory_history(max_entries=...).",
  "TM-A114":
    "Private pools (CUDA graphs) keep memory that the rest cannot use: capture fewer shapes, or let the graphs share a pool.",
  "TM-A115":
    "The device is too small for what is asked: smaller batch or sequence, gradient accumulation, activation checkpointing, bf16, or sharding.",
  "TM-A116":
    "This process had room of its own left but the device had none: set a share with torch.cuda.set_per_process_memory_fraction, for garbage_collection_threshold acts only with one.",
  "TM-A117":
    "XLA takes 75 % of the device at its start: XLA_PYTHON_CLIENT_MEM_FRACTION, or XLA_PYTHON_CLIENT_PREALLOCATE=false where devices are shared.",
  "TM-A118":
    "TensorFlow takes the whole device at its start: tf.config.experimental.set_memory_growth(gpu, True) where devices are shared.",
  "TM-A119":
    "Free memory is cut into pieces: TF_GPU_ALLOCATOR=cuda_malloc_async (TensorFlow) or XLA_PYTHON_CLIENT_ALLOCATOR=platform (JAX) goes around the BFC allocator.",
  "TM-A120":
    "The server's share of the device (vLLM: --gpu-memory-utilization) does not fit: lower it where other processes hold memory, raise it where weights leave no room for the KV cache.",
  "TM-A121":
    "Less KV cache a request: --max-model-len, a quantised cache (--kv-cache-dtype fp8), fewer --max-num-seqs, or more devices (--tensor-parallel-size).",
  "TM-A122":
    "Host memory could not be pinned: fewer DataLoader workers or prefetched batches, pin_memory=False, or a higher memory limit of the container.",
  "TM-A123":
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO sets how much Metal may take; 0.0 lifts the limit and may take the whole system down.",
  "TM-A124":
    "Leave room for NCCL: torch.cuda.set_per_process_memory_fraction below 1, or initialise the process group before the largest allocations.",
  "TM-A125":
    "Not the device but the address space is used up: {conf}=expandable_segments_reserve with less, or fewer CUDA streams; also see ulimit -v.",
  "TM-A126":
    "The program's own limit refused it, not the device: raise the share (torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in {conf} where that sets it), or need less.",
  "TM-A127":
    "Less at once: a smaller batch, jax.checkpoint (rematerialisation) on the largest layers, donate_argnums for arrays that are replaced, bf16, or sharding over more devices.",
  "TM-A128":
    "A kernel's scratch memory is a core's own, of a fixed size: smaller block shapes (Pallas), or less fused into one kernel. The batch does not change it.",
  "TM-A129":
    "Less on the device: a smaller model, batch, context or quantisation, fewer layers on it, or more devices; the library's own limit, if it has one, may be set too low.",
  "TM-A130":
    "expandable_segments came with PyTorch 2.1, and earlier versions end every CUDA call with an error when they read it: upgrade. max_split_size_mb is known from 1.10 on.",
  "TM-A131":
    "Free memory is cut up by the order of requests: make what lasts first, keep to a few sizes, and let one phase give everything back (empty_cache) before the next begins.",
  "TM-A132":
    "The host's memory ran out, not the device's: smaller or fewer batches at once, fewer workers, or a higher limit of the container; tidemark run shows what fills it.",
  "TM-A133":
    "TensorFlow's pinned host memory has a limit of its own: TF_GPU_HOST_MEM_LIMIT_IN_MB (before 1.14 TF_CUDA_HOST_MEM_LIMIT_IN_MB) raises it; fewer prefetched batches and less of the model on the CPU need less.",
} as const;
export type GpuAdviceId = keyof typeof GPU_ADVICE;

/** What every version from 1.8 on reads, builds for ROCm the second; the third is 2.9's own name for it. */
export type ConfName = "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_HIP_ALLOC_CONF" | "PYTORCH_ALLOC_CONF";
/** 2.9.1 does not heed its own name for expandable_segments (pytorch issue 183387); the older one is read to this day. */
const OLDER_NAME = " (2.9.1 heeds the older name alone: set PYTORCH_CUDA_ALLOC_CONF to the same.)";

export function adviceOf(
  ids: readonly GpuAdviceId[],
  conf: ConfName = "PYTORCH_CUDA_ALLOC_CONF",
): GpuAdviceJson[] {
  return [...new Set(ids)].map((id) => {
    const text = GPU_ADVICE[id].replaceAll("{conf}", conf);
    const isOwn = conf === "PYTORCH_ALLOC_CONF" && text.includes(conf);
    return { id, text: isOwn ? text + OLDER_NAME : text };
  });
}

/** The same for Windows, where PyTorch has no expandable segments: it warns, and goes on without. */
export function adviceOnWindows(advice: readonly GpuAdviceJson[]): GpuAdviceJson[] {
  const rest = advice.filter(({ id }) => id !== "TM-A101");
  if (rest.length === advice.length) {
    return [...advice];
  }
  return [...rest, ...adviceOf(["TM-A131"])].sort((a, b) => (a.id < b.id ? -1 : 1));
}
