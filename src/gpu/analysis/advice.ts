/** The catalogue of advice for devices. Ids are stable: TM-A101 to TM-A199. */
import type { GpuAdviceJson } from "../../model/documents/gpu/gpu_document.js";

export const GPU_ADVICE = {
  "TM-A101":
    "Set {conf}=expandable_segments:True: segments then grow in place, so that their borders do not split free memory.",
  "TM-A102":
    "If expandable segments are unavailable: {conf}=max_split_size_mb:N, with N above the usual tensor size. A last resort, because it makes large requests slower.",
  "TM-A103":
    "Sizes differ slightly from step to step: {conf}=roundup_power2_divisions:4 lets blocks be reused. Or pad the input to a few lengths.",
  "TM-A104":
    "Activations cause the peak: use torch.utils.checkpoint on the largest blocks, a smaller batch with gradient accumulation, or bf16 autocast.",
  "TM-A105":
    "Optimizer state is large: use an 8-bit optimizer, or shard it over the ranks (ZeRO, FSDP).",
  "TM-A106":
    "Something keeps a tensor of each step: use .item() or .detach() for values that are logged or collected, and drop the list that holds them.",
  "TM-A107":
    "Gradients are kept between steps: call optimizer.zero_grad(set_to_none=True) right after the step.",
  "TM-A108":
    "Another process holds part of the device: give each process its own device (CUDA_VISIBLE_DEVICES), or stop the leftover process (nvidia-smi lists it).",
  "TM-A109":
    "Much memory is held outside PyTorch's allocator: CUDA context, NCCL buffers, other libraries. Use fewer processes per device, or a smaller NCCL_BUFFSIZE.",
  "TM-A110":
    "Rounding wastes much memory: many allocations are far below 512 bytes or just above a rounding step. Combine small tensors into one.",
  "TM-A111":
    "Cached segments are not a problem: PyTorch releases them before it raises an error. torch.cuda.empty_cache() helps only other processes.",
  "TM-A112":
    "The KV cache is large: use fewer or shorter sequences at once, a quantized cache, or a paged one (gpu_memory_utilization in vLLM).",
  "TM-A113":
    "The trace lost its beginning: record more entries with torch.cuda.memory._record_memory_history(max_entries=...).",
  "TM-A114":
    "Private pools (CUDA graphs) keep memory that other allocations cannot use: capture fewer shapes, or let the graphs share a pool.",
  "TM-A115":
    "The device is too small for the request: use a smaller batch or sequence, gradient accumulation, activation checkpointing, bf16, or sharding.",
  "TM-A116":
    "This process had free memory in its own pool, but the device had none: set a share with torch.cuda.set_per_process_memory_fraction, because garbage_collection_threshold works only with a share.",
  "TM-A117":
    "XLA reserves 75 % of the device at start-up: set XLA_PYTHON_CLIENT_MEM_FRACTION, or XLA_PYTHON_CLIENT_PREALLOCATE=false if devices are shared.",
  "TM-A118":
    "TensorFlow reserves the whole device at start-up: call tf.config.experimental.set_memory_growth(gpu, True) if devices are shared.",
  "TM-A119":
    "Free memory is split into pieces: TF_GPU_ALLOCATOR=cuda_malloc_async (TensorFlow) or XLA_PYTHON_CLIENT_ALLOCATOR=platform (JAX) bypasses the BFC allocator.",
  "TM-A120":
    "The server's share of the device (vLLM: --gpu-memory-utilization) does not fit: lower it if other processes hold memory, raise it if the weights leave no room for the KV cache.",
  "TM-A121":
    "Reduce the KV cache per request: --max-model-len, a quantized cache (--kv-cache-dtype fp8), fewer --max-num-seqs, or more devices (--tensor-parallel-size).",
  "TM-A122":
    "Host memory could not be pinned: use fewer DataLoader workers or prefetched batches, pin_memory=False, or a higher memory limit of the container.",
  "TM-A123":
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO sets how much memory Metal may use; 0.0 removes the limit, which may crash the whole system.",
  "TM-A124":
    "Leave room for NCCL: torch.cuda.set_per_process_memory_fraction below 1, or initialize the process group before the largest allocations.",
  "TM-A125":
    "The address space is used up, not the device: lower expandable_segments_reserve in {conf}, or use fewer CUDA streams; also check ulimit -v.",
  "TM-A126":
    "The program's own limit refused the request, not the device: raise the share (torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in {conf} if it is set there), or use less memory.",
  "TM-A127":
    "Use less memory at once: a smaller batch, jax.checkpoint (rematerialisation) on the largest layers, donate_argnums for arrays that are replaced, bf16, or sharding over more devices.",
  "TM-A128":
    "A kernel's scratch memory belongs to one core and has a fixed size: use smaller block shapes (Pallas), or fuse less into one kernel. The batch size does not matter.",
  "TM-A129":
    "Put less on the device: a smaller model, batch or context, stronger quantization, fewer layers on it, or more devices. The library's own limit, if it has one, may be too low.",
  "TM-A130":
    "expandable_segments needs PyTorch 2.1; in earlier versions the setting makes every CUDA call fail, so upgrade. max_split_size_mb works from 1.10 on.",
  "TM-A131":
    "The order of requests fragments free memory: allocate long-lived tensors first, use few sizes, and release everything (empty_cache) between phases.",
  "TM-A132":
    "Host memory ran out, not device memory: use smaller or fewer batches at once, fewer workers, or a higher container limit. tidemark run shows what uses it.",
  "TM-A133":
    "TensorFlow's pinned host memory has its own limit: TF_GPU_HOST_MEM_LIMIT_IN_MB (TF_CUDA_HOST_MEM_LIMIT_IN_MB before 1.14) raises it. Fewer prefetched batches and a smaller part of the model on the CPU reduce the need.",
} as const;
export type GpuAdviceId = keyof typeof GPU_ADVICE;

/** Variables that every version from 1.8 on reads (builds for ROCm read the second); the third is the name in 2.9. */
export type ConfName = "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_HIP_ALLOC_CONF" | "PYTORCH_ALLOC_CONF";
/** 2.9.1 ignores its own name for expandable_segments (pytorch issue 183387); the older name still works. */
const OLDER_NAME =
  " (2.9.1 reads only the older name: also set PYTORCH_CUDA_ALLOC_CONF to the same value.)";

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

/** The same for Windows, where PyTorch has no expandable segments: it prints a warning and continues without them. */
export function adviceOnWindows(advice: readonly GpuAdviceJson[]): GpuAdviceJson[] {
  const rest = advice.filter(({ id }) => id !== "TM-A101");
  if (rest.length === advice.length) {
    return [...advice];
  }
  return [...rest, ...adviceOf(["TM-A131"])].sort((a, b) => (a.id < b.id ? -1 : 1));
}
