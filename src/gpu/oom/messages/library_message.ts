/**
 * Out-of-memory messages of the driver and of libraries. They have no figures, or at most the request:
 *
 *   CUDA error: out of memory            CUDA driver error: out of memory      HIP error: hipErrorOutOfMemory
 *   cuda runtime error (2) : out of memory at .../THC/THCTensorRandom.cu:25
 *   CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
 *   NVML_SUCCESS == r INTERNAL ASSERT FAILED at ".../CUDACachingAllocator.cpp":995
 *
 * The names also occur in headers, code and documentation. They count only if the line reports an error, and
 * not if the phrase is quoted.
 */
import type { GpuAdviceId } from "../../analysis/advice.js";
import { type MessageSource, sourceOf } from "./message_source.js";
import type { OomVerdict } from "./oom_reading.js";
import { type OomReading, reading } from "./oom_reading.js";
import { isQuoted, lineWith } from "./quoted.js";

/** Texts that are clearly an error. */
const PHRASE =
  /(?:CUDA|HIP|XPU) (?:(?:driver|Runtime|runtime) )?[Ee]rror(?: \(\d\)| in [^\n]{0,120})?: ?out of memory|CUDA Runtime Error \(out of memory\)|[Cc]uda runtime error \(2\) ?: out of memory|C(?:uda|UDA) failure.{0,12}out of memory|CUDA failed with error out of memory|cuda failed with error 2 out of memory|Triton Error \[(?:CUDA|HIP)\]: out of memory|cudaMalloc (?:retry )?failed: out of memory|cuMemAlloc failed: out of memory|cudaError_enum 2 out of memory|\[CUDA\] out of memory|kIOGPUCommandBufferCallbackErrorOutOfMemory|CUresult error {1,2}result=2\b|std::bad_alloc: out_of_memory: CUDA error|cudaSuccess \(2 vs\. 0\) {1,2}out of memory|cuFFT failed to allocate GPU or CPU memory|CUDA error 2 at [^\n]{1,120}: out of memory/;
/** Names of result codes. */
const NAME =
  /\b(?:CU(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_ALLOC_FAILED|CUDNN_STATUS_INTERNAL_ERROR_(?:DEVICE|HOST)_ALLOCATION_FAILED|CUSPARSE_STATUS_INSUFFICIENT_RESOURCES|CURAND_STATUS_ALLOCATION_FAILED|CUFFT_ALLOC_FAILED|(?:HIPBLAS|ROCBLAS|MIOPEN)_STATUS_ALLOC_FAILED|miopenStatusAllocFailed|rocblas_status_memory_error|(?:CUDA|HIP)_ERROR_(?:OUT_OF_MEMORY|OutOfMemory)|(?:cuda|hip)Error(?:MemoryAllocation|OutOfMemory)|(?:UR|ZE)_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)|PI_ERROR_OUT_OF_RESOURCES)\b/;
/** PyTorch asks NVML for figures to print; if that fails, this message hides the original error (NVML_SUCCESS is 0). */
const MASKED =
  /NVML_SUCCESS == \w{1,8} INTERNAL ASSERT FAILED at "[^"\n]{0,200}CUDACachingAllocator/;
const OUTSIDE = /ran out of memory outside PyTorch's allocator/;

export const LIBRARY_START = new RegExp(
  [PHRASE, NAME, MASKED, OUTSIDE].map(({ source }) => source).join("|"),
);

/** "error" before the name, or words after it that occur only in errors. */
const BEFORE =
  /(?:\b\w{0,40}(?:Error|Exception)\b ?[:([]|\b(?:error|failure)\b ?[\d:('"]|\b[Ff]ail(?:ed|ure)\b|\bFAIL\b|[Cc]ould not|bad_alloc|what\(\)|results in|returned|\bERROR\b)[^\n]{0,200}$/;
const BEHIND = /^(?:\)?["'`]?[:,]? ?["'(]?out of memory| when calling)/;
const DEFINED = /^\s*(?:=|\])/;
const COMPARED = /(?:[=!]=|\bcase|\breturn)\s{1,8}(?:\w{1,20}::)?$/;

const NAMED: readonly (readonly [RegExp, string])[] = [
  [/^CUBLAS/, "cuBLAS"],
  [/^CUDNN/, "cuDNN"],
  [/^CUSOLVER/, "cuSOLVER"],
  [/^CUSPARSE/, "cuSPARSE"],
  [/^CURAND/, "cuRAND"],
  [/^(?:CUFFT|cuFFT)/, "cuFFT"],
  [/^HIPBLAS/, "hipBLAS"],
  [/^(?:ROCBLAS|rocblas)/, "rocBLAS"],
  [/^(?:MIOPEN|miopen)/, "MIOpen"],
  [/^(?:UR|ZE|PI)_/, "Level Zero"],
  [/^Triton/, "Triton"],
  [/^kIOGPU/, "Metal"],
];

/** @param text the message and a few lines after it; null if it has no error */
export function parseLibraryMessage(text: string): OomReading | null {
  if (MASKED.test(text)) {
    return masked();
  }
  if (OUTSIDE.test(text)) {
    return reading(
      outside("cuDNN", { framework: "pytorch", library: "" }),
      {},
      { library: "cuDNN" },
    );
  }
  const found = errorIn(text);
  if (found === null) {
    return null;
  }
  const { index, words } = found;
  const line = lineWith(text, index);
  const source = sourceOf(line + behind(text, index));
  const named = NAMED.find(([pattern]) => pattern.test(words))?.[1] ?? "";
  // Up to 0.4 the allocator reports this itself when it creates a tensor's storage.
  if (/THC\/(?:generic\/)?THC(?:Storage|Tensor)\.(?:cu|c)\b/.test(line)) {
    return storage();
  }
  return reading(
    outside(named, source, words),
    {},
    {
      framework: source.framework,
      library: [source.library, named].filter((name) => name !== "").join(", "),
    },
  );
}

function errorIn(text: string): { index: number; words: string } | null {
  const phrases = text.matchAll(new RegExp(PHRASE.source, "g"));
  for (const { 0: words, index } of phrases) {
    if (!isQuoted(text, index, words.length)) {
      return { index, words };
    }
  }
  for (const { 0: words, index } of text.matchAll(new RegExp(NAME.source, "g"))) {
    const before = text.slice(Math.max(0, index - 240), index);
    const after = text.slice(index + words.length, index + words.length + 40);
    if (DEFINED.test(after) || COMPARED.test(before)) {
      continue;
    }
    if (BEFORE.test(before) || BEHIND.test(after)) {
      return { index, words };
    }
  }
  return null;
}

/** Includes two more lines, because PyTorch ends its texts with distinctive hints. */
function behind(text: string, index: number): string {
  return text.slice(index).split("\n").slice(1, 4).join("\n");
}

const ADVICE: Readonly<Record<MessageSource["framework"], readonly GpuAdviceId[]>> = {
  pytorch: ["TM-A109", "TM-A108"],
  tensorflow: ["TM-A118", "TM-A108"],
  jax: ["TM-A117", "TM-A108"],
  other: ["TM-A108", "TM-A129"],
};

function outside(named: string, { framework, library }: MessageSource, words = ""): OomVerdict {
  const anyone =
    framework === "other"
      ? "a program or library that the message does not name"
      : "the driver or a library (cuBLAS, cuDNN, NCCL)";
  const who = [named, library].find((name) => name !== "") ?? anyone;
  const where =
    framework === "pytorch"
      ? "outside PyTorch's allocator"
      : framework === "other"
        ? "on the device"
        : `outside ${framework === "jax" ? "JAX" : "TensorFlow"}'s pool, which may hold the whole device`;
  const mapping = /driver error/.test(words)
    ? "; expandable segments and private pools make such driver calls"
    : "";
  return {
    kind: "context",
    because: `${who} could not allocate memory ${where}; the message has no figures${mapping}`,
    advice: [...ADVICE[framework]],
  };
}

function storage(): OomReading {
  return reading({
    kind: "unknown",
    because:
      "PyTorch (up to 0.4) could not allocate a tensor; its messages have no figures: nvidia-smi shows whether other processes use the device",
    advice: ["TM-A115", "TM-A108"],
  });
}

function masked(): OomReading {
  return reading({
    kind: "unknown",
    because:
      "this error hides an out-of-memory error: PyTorch requested the figures of its message from NVML, which is not available here (Jetson, vGPU, MIG, some containers)",
    advice: ["TM-A115", "TM-A108"],
  });
}
