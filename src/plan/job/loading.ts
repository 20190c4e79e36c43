/**
 * What transformers loads in 16 bits instead of the checkpoint's own type, and what its Trainer refuses.
 *
 * | `quant_method` | kernels from compute capability | adapters beside it |
 * |---|---|---|
 * | fp8 | 8.9, otherwise 16 bits (quantizer_finegrained_fp8.py) | yes; earlier versions refuse them |
 * | mxfp4 | 7.5, otherwise 16 bits (quantizer_mxfp4.py) | refused; 16 bits with `dequantize=True` |
 * | fbgemm_fp8 | 9.0, otherwise refused (quantizer_fbgemm_fp8.py) | refused |
 * | auto-round, gemma, higgs, metal, nvfp4, quark, spqr, vptq | | refused (`is_trainable` of the quantizer) |
 * | bitnet, fouroversix, fp_quant, torchao | | by their configurations (quantized_weights.ts) |
 * | aqlm, awq, bitsandbytes, compressed-tensors, eetq, gptq, hqq, mxfp8, quanto, sinq | | yes; awq needs gptqmodel 5 |
 */
import { formatBytes } from "../../model/base/numbers.js";
import { badUsage } from "../../model/errors/errors.js";
import { capabilityWords, type Gpu } from "../device/gpus.js";
import { isMoe } from "../shape/layers.js";
import type { ModelShape, QuantizedWeights } from "../shape/model_shape.js";
import { ggufTypes } from "./gguf_types.js";
import {
  convertsFile,
  type Engine,
  type Library,
  type Method,
  type Parallelism,
  type PlanOptions,
  QUANTIZED_BYTES,
  type Quantization,
} from "./options.js";

export interface LoadingJob {
  readonly mode: PlanOptions["mode"];
  readonly gpu: Gpu;
  readonly engine?: Engine | undefined;
  readonly library?: Library | undefined;
  readonly method?: Method | undefined;
  readonly quantize?: Quantization | null | undefined;
}

const FP8_FROM = 8.9;
const MXFP4_FROM = 7.5;
const FBGEMM_FROM = 9;

const NOT_TRAINED: ReadonlySet<string> = new Set([
  "fbgemm_fp8",
  "auto-round",
  "intel/auto-round",
  "gemma",
  "higgs",
  "metal",
  "nvfp4",
  "quark",
  "spqr",
  "vptq",
]);

/** It replaces modules of the class nn.Linear (replace_with_bnb_linear); the experts of transformers 5 are none. */
const BITSANDBYTES: ReadonlySet<Quantization> = new Set(["nf4", "nf4-dq", "int8"]);

/** A sentence about experts that stay in 16 bits. @param count counts the parameters of the experts' matrices */
export function keptExperts(
  model: ModelShape,
  options: Parameters<typeof quantizationOf>[1] & KeptJob,
  count: () => number,
): string[] {
  const hasExperts = model.towers.some(({ layers }) =>
    layers.some(
      ({ layer }) => layer.kind === "transformer" && layer.mlp !== null && isMoe(layer.mlp),
    ),
  );
  const quantization = quantizationOf(model, options);
  if (!hasExperts || quantization?.keepsExperts !== true) {
    return [];
  }
  const kept =
    options.mode === "train" && options.method === "qlora" ? `; ${keptWords(options)}` : "";
  return [
    `bitsandbytes quantizes linear layers, and the experts of transformers 5 are parameters of three dimensions: they are not quantized (issue 1849 of bitsandbytes)${kept}; in transformers 4 each expert has linear layers, which are quantized, and all of them take ${formatBytes(count() * quantization.bytesPerWeight)} in ${quantization.dtype}`,
  ];
}

interface KeptJob {
  readonly fp32Weights?: boolean;
  readonly parallelism?: Parallelism;
}

function keptWords({ fp32Weights, parallelism }: KeptJob): string {
  if (parallelism?.sharding.kind.startsWith("zero") === true) {
    return "they stay in 16 bits, because DeepSpeed converts all weights to the type in which it computes";
  }
  return fp32Weights === true
    ? "prepare_model_for_kbit_training of PEFT converts them to fp32: leave it out (--weights 16bit), and call gradient_checkpointing_enable() and enable_input_require_grads() instead"
    : "they stay in 16 bits as long as the program does not call prepare_model_for_kbit_training of PEFT, which converts them to fp32";
}

function isTransformers({ mode, engine, library }: LoadingJob): boolean {
  return mode === "train" ? library === "transformers" : engine === "transformers";
}

/** The method by which the loaded weights would be quantized; "" for none and for those of bitsandbytes. */
function methodOf({ stored }: ModelShape, { quantize }: LoadingJob): string {
  return (quantize ?? null) === null
    ? (stored.quantization?.method ?? stored.unread ?? "")
    : quantize === "fp8"
      ? "fp8"
      : "";
}

/** Why transformers loads the weights in 16 bits; null where they stay as they are stored, or as `--quantize` says. */
export function loadsWide(model: ModelShape, job: LoadingJob): string | null {
  if (!isTransformers(job)) {
    return null;
  }
  const method = methodOf(model, job);
  const from = method === "fp8" ? FP8_FROM : method === "mxfp4" ? MXFP4_FROM : 0;
  const { capability, isCpu } = job.gpu;
  if (isCpu === true ? from > 0 : capability < from) {
    return isCpu === true
      ? `transformers has no ${method} kernels for the CPU: it loads the weights in 16 bits`
      : `transformers has ${method} kernels from compute capability ${from.toFixed(1)} on, and ${capabilityWords(job.gpu)}: it loads the weights in 16 bits`;
  }
  return method === "mxfp4" && job.mode === "train"
    ? "transformers' Trainer cannot train adapters beside mxfp4 weights: the plan assumes that the checkpoint is loaded in 16 bits (Mxfp4Config(dequantize=True))"
    : null;
}

/** @throws TidemarkError TM-E002 for a quantization that the engine does not load, or transformers does not train */
export function requireLoadable(model: ModelShape, job: LoadingJob): void {
  const { engine, quantize } = job;
  if (engine === "llama.cpp" && quantize && ggufTypes(quantize, 0) === null) {
    throw badUsage(
      `llama.cpp does not load weights in ${quantize}: a GGUF file has no such type`,
      "use --quantize int4 (Q4_0) or int8 (Q8_0), or name the GGUF file",
    );
  }
  const method = methodOf(model, job);
  const { capability } = job.gpu;
  if (!isTransformers(job)) {
    return;
  }
  const isUntrained = method !== "" && model.stored.quantization?.untrained === true;
  if (job.mode === "train" && (NOT_TRAINED.has(method) || isUntrained)) {
    throw badUsage(
      `transformers' Trainer trains neither weights quantized by ${method}${isUntrained ? " as in this configuration" : ""} nor adapters beside them`,
      "plan the checkpoint before its quantization",
    );
  }
  if (method === "fbgemm_fp8" && capability < FBGEMM_FROM) {
    throw badUsage(
      `transformers loads weights of fbgemm_fp8 from compute capability 9.0 on, and ${capabilityWords(job.gpu)}`,
      "use --gpu h100, or --engine vllm",
    );
  }
}

/** A sentence about versions of the Trainer that refuse what the plan is of. */
export function refusedByOlder(model: ModelShape, job: LoadingJob): string[] {
  return job.mode === "train" &&
    job.method !== "full" &&
    isTransformers(job) &&
    methodOf(model, job) === "fp8" &&
    loadsWide(model, job) === null
    ? [
        "transformers 5.24 trains adapters beside fp8 weights; Trainers of earlier versions refuse them, unless the checkpoint is loaded with dequantize=True, in 16 bits",
      ]
    : [];
}

/** The quantization: that of the option, otherwise that of the checkpoint. */
export function quantizationOf(
  model: ModelShape,
  {
    quantize,
    mode,
    engine,
    ...options
  }: Pick<PlanOptions, "quantize" | "mode" | "gpu"> & {
    method?: Method;
    engine?: Engine;
    library?: Library;
  },
): QuantizedWeights | null {
  if (loadsWide(model, { quantize, mode, engine, ...options }) !== null) {
    return null;
  }
  if (quantize !== null) {
    const dtype = quantize === "nf4-dq" ? "nf4" : quantize;
    const weights = { dtype, bytesPerWeight: QUANTIZED_BYTES[quantize] } as const;
    const keepsExperts = BITSANDBYTES.has(quantize) && isTransformers({ mode, engine, ...options });
    return keepsExperts ? { ...weights, keepsExperts } : weights;
  }
  if (mode === "train" && options.method === "full") {
    return null;
  }
  return convertsFile(model, { mode, engine }) ? null : model.stored.quantization;
}
