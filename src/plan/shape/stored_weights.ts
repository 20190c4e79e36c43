/** How a checkpoint stores its weights. */
import type { ModelConfig } from "./config.js";
import type { StoredWeights } from "./model_shape.js";

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
    : `${name} ${JSON.stringify(value)?.slice(0, 60)} is not float32, bfloat16 or float16; the weights count as fp32 unless --dtype is given`;
}

/** `torch_dtype` (`dtype` of later versions) and `quantization_config`. */
export function storedWeights(config: ModelConfig): StoredWeights {
  const dtype = DTYPES[config.text("torch_dtype", "dtype").replace("torch.", "")] ?? null;
  const quantization = config.part("quantization_config");
  return { dtype, quantization: quantization === null ? null : quantizationOf(quantization) };
}

/** bitsandbytes, GPTQ, AWQ, fp8, compressed-tensors, mxfp4. */
function quantizationOf(config: ModelConfig): StoredWeights["quantization"] {
  const method = config.text("quant_method");
  if (config.flag(false, "load_in_4bit", "_load_in_4bit")) {
    const double = config.flag(false, "bnb_4bit_use_double_quant");
    return { dtype: "nf4", bytesPerWeight: double ? 0.5 + 1 / 64 + 4 / (64 * 256) : 0.5 + 4 / 64 };
  }
  if (config.flag(false, "load_in_8bit", "_load_in_8bit")) {
    return { dtype: "int8", bytesPerWeight: 1 + 4 / 4096 };
  }
  if (method === "mxfp4") {
    return { dtype: "int4", bytesPerWeight: 0.5 + 1 / 32 };
  }
  const bits = config.optionalSize("bits", "w_bit", "num_bits");
  if (method === "fp8" || method === "fbgemm_fp8") {
    return { dtype: "fp8", bytesPerWeight: 1 + 4 / 16384 };
  }
  if (bits !== undefined && bits <= 8) {
    const group = config.optionalSize("group_size", "q_group_size") ?? 128;
    return {
      dtype: bits <= 4 ? "int4" : "int8",
      bytesPerWeight: bits / 8 + (2 + bits / 8) / group,
    };
  }
  return method === "compressed-tensors" ? { dtype: "fp8", bytesPerWeight: 1 + 2 / 4096 } : null;
}
