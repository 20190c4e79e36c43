/** How a checkpoint stores its weights. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { keptModules } from "./kept_modules.js";
import type { QuantizedWeights, StoredWeights } from "./model_shape.js";
import { ownFormat } from "./quantized_weights.js";

const DTYPES: Readonly<Record<string, "fp32" | "bf16" | "fp16">> = {
  float32: "fp32",
  bfloat16: "bf16",
  float16: "fp16",
};

/** A sentence about a type that is not planned; null if it is one of DTYPES or absent. */
export function unknownType({ values }: ModelConfig): string | null {
  const [name, value] = ["torch_dtype", "dtype"]
    .map((key) => [key, values[key]] as const)
    .find(([, found]) => found !== undefined && found !== null) ?? ["", "float32"];
  return typeof value === "string" && value.replace("torch.", "") in DTYPES
    ? null
    : `${name} ${JSON.stringify(value)?.slice(0, 60)} is not float32, bfloat16 or float16; the weights count as those of an fp32 checkpoint, unless --dtype is given`;
}

/** `torch_dtype` (`dtype` of later versions) and `quantization_config`. */
export function storedWeights(config: ModelConfig): StoredWeights {
  const dtype = DTYPES[config.text("torch_dtype", "dtype").replace("torch.", "")] ?? null;
  const values = config.part("quantization_config");
  if (values === null && config.has("quantization_config")) {
    throw invalidModel(config.source, "quantization_config is not an object");
  }
  const quantization = values === null ? null : quantizationOf(values);
  const method = values?.text("quant_method") ?? "";
  if (values === null || quantization === null) {
    const isUnread = values !== null && method !== "" && ownFormat(values) !== null;
    return { dtype, quantization, ...(isUnread ? { unread: method } : {}) };
  }
  const { kept } = keptModules(values);
  return {
    dtype,
    quantization: { ...quantization, method, ...(kept === null ? {} : { kept }) },
  };
}

/** A sentence about a quantization that the plan does not know; null if there is none. */
export function unreadQuantization(config: ModelConfig): string | null {
  const values = config.part("quantization_config");
  const { quantization, unread } = storedWeights(config);
  if (values === null || Object.keys(values.values).length === 0) {
    return null;
  }
  const method = values.text("quant_method");
  const words = `quantization_config (${method === "" ? "without a quant_method" : method.slice(0, 40)})`;
  if (unread !== undefined || (quantization === null && method === "")) {
    return `${words} has no size of a weight that the plan reads: weights count in 16 bits`;
  }
  const isNamed =
    METHODS.has(method) || ownFormat(values) !== undefined || loadedBits(values) !== null;
  return quantization === null || isNamed || values.text("quant_algo") !== ""
    ? null
    : `${words} is of a method that the plan does not know: each weight counts ${Number(quantization.bytesPerWeight.toFixed(3))} B, from its number of bits`;
}

/** Methods whose fields are read below. */
const METHODS: ReadonlySet<string> = new Set([
  "auto-round",
  "awq",
  "bitsandbytes",
  "compressed-tensors",
  "fbgemm_fp8",
  "fp8",
  "gemma",
  "gptq",
  "higgs",
  "intel/auto-round",
  "metal",
  "modelopt",
  "mxfp4",
  "quark",
  "spqr",
]);

/** Of bitsandbytes. */
function loadedBits(config: ModelConfig): 4 | 8 | null {
  return config.flag(false, "load_in_4bit", "_load_in_4bit")
    ? 4
    : config.flag(false, "load_in_8bit", "_load_in_8bit")
      ? 8
      : null;
}

/** A sentence about modules of a quantized checkpoint that the plan takes for quantized; null if there are none. */
export function unreadModules(config: ModelConfig): string | null {
  const values = config.part("quantization_config");
  const unread = values === null ? [] : keptModules(values).unread;
  return unread.length === 0
    ? null
    : `quantization_config keeps modules by expressions that are not read, and the plan takes them for quantized: ${unread.slice(0, 3).join(", ")}${unread.length > 3 ? `, and ${unread.length - 3} more` : ""}`;
}

/** Elements of a row, where a scale is one of a row. */
const USUAL_ROW = 4096;

/** bitsandbytes, GPTQ, AWQ, fp8, compressed-tensors, ModelOpt, mxfp4. */
function quantizationOf(config: ModelConfig): QuantizedWeights | null {
  const method = config.text("quant_method");
  const own = ownFormat(config);
  if (own !== undefined) {
    return own;
  }
  const loaded = loadedBits(config);
  if (loaded === 4) {
    const double = config.flag(false, "bnb_4bit_use_double_quant");
    return { dtype: "nf4", bytesPerWeight: double ? 0.5 + 1 / 64 + 4 / (64 * 256) : 0.5 + 4 / 64 };
  }
  if (loaded === 8) {
    return { dtype: "int8", bytesPerWeight: 1 + 4 / USUAL_ROW };
  }
  if (method === "mxfp4") {
    return { dtype: "int4", bytesPerWeight: 0.5 + 1 / 32, expertsAlone: true };
  }
  const groups = groupedWeights(config);
  if (groups !== null) {
    return groups;
  }
  const bits = config.optionalSize("bits", "w_bit", "num_bits");
  if (method === "fp8" || method === "fbgemm_fp8") {
    return { dtype: "fp8", bytesPerWeight: 1 + 4 / 16384 };
  }
  const algorithm = config.text("quant_algo").toUpperCase();
  if (algorithm.includes("NVFP4")) {
    return { dtype: "int4", bytesPerWeight: 0.5 + 1 / 16 };
  }
  if (bits !== undefined && bits <= 8) {
    const group = groupSize(config) ?? 128;
    return {
      dtype: bits <= 4 ? "int4" : "int8",
      bytesPerWeight: bits / 8 + (2 + bits / 8) / group,
    };
  }
  return method === "compressed-tensors" || algorithm === "FP8"
    ? { dtype: "fp8", bytesPerWeight: 1 + 2 / USUAL_ROW }
    : null;
}

/** Weights of one scale; -1 is a whole row (GPTQ). */
function groupSize(config: ModelConfig): number | undefined {
  return [config.values.group_size, config.values.q_group_size].includes(-1)
    ? USUAL_ROW
    : config.optionalSize("group_size", "q_group_size");
}

/**
 * `config_groups` of compressed-tensors, where the first group decides. A scale has 16 bits, and a zero point as many as a
 * weight; groups of floating-point numbers have scales of 8 bits (nvfp4, mxfp4).
 */
function groupedWeights(config: ModelConfig): QuantizedWeights | null {
  const groups = config.part("config_groups");
  const [name] = Object.keys(groups?.values ?? {});
  const weights = name === undefined ? null : (groups?.part(name)?.part("weights") ?? null);
  const bits = weights?.optionalSize("num_bits");
  if (weights === null || bits === undefined || bits > 8) {
    return null;
  }
  const size = groupSize(weights);
  const isFloat = weights.text("type") === "float";
  const perGroup = isFloat && bits === 4 ? 1 : weights.flag(true, "symmetric") ? 2 : 2 + bits / 8;
  const scales = weights.text("strategy") === "tensor" ? 0 : perGroup / (size ?? USUAL_ROW);
  const dtype = bits <= 4 ? "int4" : isFloat ? "fp8" : "int8";
  return { dtype, bytesPerWeight: bits / 8 + scales };
}
