/** The library that wrote a message, from the paths, packages and classes in its lines. */
import type { OomEventJson } from "../../../model/documents/gpu/gpu_document.js";

export interface MessageSource {
  readonly framework: OomEventJson["framework"];
  /** "" for the framework itself. */
  readonly library: string;
}

/**
 * The first match counts. TensorFlow bundles XLA and TSL as `external/local_xla` and `external/local_tsl`, JAX
 * as `external/xla` and `external/tsl`; before 2.13 JAX bundled TensorFlow, as `external/org_tensorflow`.
 */
const SOURCES: readonly (readonly [RegExp, MessageSource["framework"], string])[] = [
  [/external\/local_(?:xla|tsl)\//, "tensorflow", ""],
  [
    /external\/(?:xla|tsl|org_tensorflow)\/|jaxlib|\bjax[./]|XlaRuntimeError|JaxRuntimeError/,
    "jax",
    "",
  ],
  [/\btensorflow[./]|\bitex\//, "tensorflow", ""],
  [/\bnumba\./, "other", "Numba"],
  [/\bcupy\./, "other", "CuPy"],
  [/[Xx][Gg][Bb]oost/, "other", "XGBoost"],
  [/LightGBM/, "other", "LightGBM"],
  [/\brmm\/|\bRMM\b/, "other", "RMM"],
  [/\bthrust::|std::bad_alloc: cudaErrorMemoryAllocation/, "other", "Thrust"],
  [/\bmxnet|MXNet/, "other", "MXNet"],
  [/\bpycuda\b/, "other", "PyCUDA"],
  [/\bggml|\bllama/, "other", "llama.cpp"],
  [/TensorRT-LLM|\btensorrt_llm\b/, "other", "TensorRT-LLM"],
  [/\[TRT\]|TensorRT/, "other", "TensorRT"],
  [/onnxruntime|ONNXRuntime/, "other", "ONNX Runtime"],
  [/\[TM\]|turbomind|lmdeploy/, "other", "LMDeploy"],
  [/\[FT\]|fastertransformer/, "other", "FasterTransformer"],
  [/CUDA failed with error/, "other", "CTranslate2"],
  [/\bcumm\b|tensorview/, "other", "spconv"],
  [/code #2, ERROR_OUT_OF_MEMORY|CUDA\.jl/, "other", "CUDA.jl"],
  [/\bDriverError\(/, "other", "cudarc (Rust)"],
  [/cudaSuccess \(2 vs/, "other", "Caffe"],
  [/\btorch_memory_saver\b/, "other", "torch_memory_saver"],
  [
    /torch|c10|\bATen\b|THCuda|\/THC\/|CUDA_LAUNCH_BLOCKING|AcceleratorError|CUDA kernel errors|ncclUnhandled|NCCL|RuntimeError(?:: |\(["'])(?:CUDA|HIP|XPU|cu[A-Z]\w{1,12}|NCCL|Triton|miopen\w{0,30}|Native API|level_zero)\b/,
    "pytorch",
    "",
  ],
];

/** @param text only the lines of the message */
export function sourceOf(text: string): MessageSource {
  for (const [pattern, framework, library] of SOURCES) {
    if (pattern.test(text)) {
      return { framework, library };
    }
  }
  return { framework: "other", library: "" };
}
