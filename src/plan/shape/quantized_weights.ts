/**
 * What one weight of a quantized checkpoint takes, scales and zero points included, by `quant_method`. Fields are those of
 * transformers' quantization_config.py; what its Trainer trains is `is_trainable` of each quantizer.
 */
import type { ModelConfig } from "./config.js";
import type { QuantizedWeights } from "./model_shape.js";

/** Elements of a row, where a scale is one of a row. */
const USUAL_ROW = 4096;
/** A scale and a zero point of 16 bits each. */
const SCALE_AND_ZERO = 4;

/** Null: weights in 16 bits. Undefined: a field that decides is missing. */
type Reader = (config: ModelConfig) => QuantizedWeights | null | undefined;

const INT8: QuantizedWeights = { dtype: "int8", bytesPerWeight: 1 + 2 / USUAL_ROW };
const FP8: QuantizedWeights = { dtype: "fp8", bytesPerWeight: 1 + 2 / USUAL_ROW };
/** Blocks of 16 with a scale of 8 bits. */
const NVFP4: QuantizedWeights = { dtype: "int4", bytesPerWeight: 0.5 + 1 / 16 };
const MXFP4: QuantizedWeights = { dtype: "int4", bytesPerWeight: 0.5 + 1 / 32 };
const UNTRAINED = { untrained: true } as const;

/** Packed numbers of a few bits, in groups with a scale and a zero point of 16 bits. */
function packed(bits: number, group: number): QuantizedWeights {
  return {
    dtype: bits <= 4 ? "int4" : "int8",
    bytesPerWeight: packedBytes(bits) + SCALE_AND_ZERO / group,
  };
}

/** Ten numbers of 3 bits in 32, and those of 5 to 7 bits in a byte each (HQQ). */
function packedBytes(bits: number): number {
  return bits === 3 ? 0.4 : bits > 4 ? 1 : bits / 8;
}

/** Methods whose fields are their own; `bits` and `group_size` of others are read elsewhere. */
const READERS: Readonly<Record<string, Reader>> = {
  // Ternary weights, four in a byte; "online" quantizes 16-bit weights in each pass, and trains these.
  bitnet: (config) => {
    const isAutomatic = config.text("linear_class") === "autobitlinear";
    return isAutomatic && config.text("quantization_mode") === "online"
      ? null
      : { dtype: "int4", bytesPerWeight: isAutomatic ? 2 : 0.25, ...UNTRAINED };
  },
  // 16-bit weights alone where it trains them, and where it emulates its format.
  fp_quant: (config) => {
    const trains = config.flag(false, "store_master_weights");
    const isWide = trains || config.flag(false, "pseudoquantization");
    return {
      ...(config.text("forward_dtype") === "mxfp4" ? MXFP4 : NVFP4),
      ...(isWide ? { bytesPerWeight: 2 } : {}),
      ...(trains ? {} : UNTRAINED),
    };
  },
  // 16-bit copies are kept beside the weights, without which the Trainer does not train.
  fouroversix: (config) =>
    config.flag(false, "keep_master_weights")
      ? { ...NVFP4, bytesPerWeight: NVFP4.bytesPerWeight + 2 }
      : { ...NVFP4, ...UNTRAINED },
  torchao: (config) => {
    const type = config.part("quant_type")?.part("default") ?? null;
    // Up to version 0.9 a name such as "int4_weight_only".
    const name = (type?.text("_type") ?? config.text("quant_type"))
      .toLowerCase()
      .replaceAll("_", "");
    const settings = type?.part("_data") ?? config.part("quant_type_kwargs");
    // One number of 4 bits in a byte, which its kernels for int8 activations read.
    const isUnpacked = /int8dynamicactivationint(?:4|x)weight/.test(name);
    const group = settings?.optionalSize("group_size") ?? (isUnpacked ? 32 : 128);
    const trained = /8weight/.test(name) ? {} : UNTRAINED;
    return /fp4/.test(name)
      ? { ...(name.startsWith("nv") ? NVFP4 : MXFP4), ...trained }
      : isUnpacked
        ? {
            dtype: "int8",
            bytesPerWeight: 1 + (name.includes("intx") ? 3 : SCALE_AND_ZERO) / group,
            ...UNTRAINED,
          }
        : /int4/.test(name)
          ? { ...packed(4, group), ...trained }
          : name.includes("float8")
            ? { ...FP8, ...trained }
            : /int8/.test(name)
              ? { ...INT8, ...trained }
              : undefined;
  },
  hqq: (config) => {
    const values = config.part("quant_config")?.part("weight_quant_params") ?? config;
    const bits = values.optionalSize("nbits", "bits");
    // Null is a whole row.
    const group = values.values.group_size === null ? USUAL_ROW : 64;
    return bits === undefined || bits > 8
      ? undefined
      : packed(bits, values.optionalSize("group_size") ?? group);
  },
  // Scales and zero points in 8 bits, of which 32 share two of 16 bits, and a second scale for each input.
  sinq: (config) => {
    const bits = config.optionalSize("nbits") ?? 4;
    const group = config.optionalSize("group_size") ?? 64;
    return bits > 8
      ? undefined
      : {
          dtype: bits <= 4 ? "int4" : "int8",
          // Six numbers of 5 bits in 32, and five of 6.
          bytesPerWeight:
            (bits === 5 || bits === 6 ? 4 / (11 - bits) : packedBytes(bits)) +
            (2 + 4 / 32) / group +
            2 / USUAL_ROW,
        };
  },
  eetq: () => INT8,
  quanto: (config) => {
    const type = config.text("weights");
    const [, bits] = /^int([248])$/.exec(type === "" ? "int8" : type) ?? [];
    return type === "float8"
      ? FP8
      : bits === "8"
        ? INT8
        : bits === undefined
          ? undefined
          : packed(Number(bits), 128);
  },
  // Each group of weights is a sum of vectors; a matrix has its own codebooks in 16 bits.
  aqlm: (config) => {
    const [bits, books, inputs, outputs] = (
      [
        ["nbits_per_codebook", 16],
        ["num_codebooks", 1],
        ["in_group_size", 8],
        ["out_group_size", 1],
      ] as const
    ).map(([name, usual]) => config.optionalSize(name) ?? usual) as [
      number,
      number,
      number,
      number,
    ];
    const group = inputs * outputs;
    return {
      dtype: "int4",
      bytesPerWeight: (bits * books) / 8 / group + 2 / USUAL_ROW,
      bytesPerMatrix: 2 ** Math.min(bits, 16) * books * group * 2,
    };
  },
  // Indices of centroids and of residual ones for each vector; the first module stands for all.
  vptq: (config) => {
    const modules = config.part("config_for_layers");
    const [name] = Object.keys(modules?.values ?? {});
    const module = name === undefined ? null : (modules?.part(name)?.values ?? null);
    const last = (key: string): number => {
      const list = module?.[key];
      const value = Array.isArray(list) ? Number(list.at(-1)) : 0;
      return value > 0 && value <= 2 ** 20 ? value : 0;
    };
    const length = last("vector_lens");
    const [centroids, residuals] = [last("num_centroids"), last("num_res_centroids")];
    const bits = Math.log2(Math.max(1, centroids)) + Math.log2(Math.max(1, residuals));
    const groups = Math.min(1024, Math.max(1, Number(module?.group_num) || 1));
    return length === 0 || centroids < 2
      ? undefined
      : {
          dtype: "int4",
          bytesPerWeight: bits / length / 8,
          bytesPerMatrix: (centroids + residuals) * length * 2 * groups,
        };
  },
  nvfp4: () => NVFP4,
  mxfp8: () => ({ dtype: "fp8", bytesPerWeight: 1 + 1 / 32 }),
};

/** Of a method with fields of its own; null: in 16 bits; undefined for all others, and where a field is missing. */
export function ownFormat(config: ModelConfig): QuantizedWeights | null | undefined {
  const method = config.text("quant_method");
  return Object.hasOwn(READERS, method) ? READERS[method]?.(config) : undefined;
}
