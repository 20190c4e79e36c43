/**
 * Types of a cache of keys and values. llama.cpp quantizes blocks of 32 values with one or two 16-bit factors
 * (ggml-common.h): q8_0 34 B, q5_1 24 B, q5_0 22 B, q4_1 20 B, q4_0 and iq4_nl 18 B.
 */
export const BLOCK_CACHE_TYPES = ["q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"] as const;
type BlockCacheType = (typeof BLOCK_CACHE_TYPES)[number];

/** Those that `--kv-dtype` takes. */
export const CACHE_TYPES = [
  "auto",
  "fp8",
  "int8",
  "fp16",
  "bf16",
  "fp32",
  ...BLOCK_CACHE_TYPES,
] as const;
export type CacheType = (typeof CACHE_TYPES)[number];

/** Those of llama.cpp by its own names, as `--cache-type-k` and `--cache-type-v` take them. */
export const LLAMA_CACHE_TYPES = ["f32", "f16", "bf16", ...BLOCK_CACHE_TYPES] as const;
export type LlamaCacheType = (typeof LLAMA_CACHE_TYPES)[number];

const BLOCK_VALUES = 32;
const BLOCK_BYTES: Readonly<Record<BlockCacheType, number>> = {
  q8_0: 34,
  q5_1: 24,
  q5_0: 22,
  q4_1: 20,
  q4_0: 18,
  iq4_nl: 18,
};

export function cacheTypeOf(type: LlamaCacheType): CacheType {
  return type === "f32" ? "fp32" : type === "f16" ? "fp16" : type;
}

/** Its name in llama.cpp. */
export function llamaNameOf(type: CacheType): string {
  return type === "fp32" ? "f32" : type === "fp16" ? "f16" : type;
}

export function isBlockType(type: CacheType): type is BlockCacheType {
  return (BLOCK_CACHE_TYPES as readonly string[]).includes(type);
}

/** Of one value. @param computeBytes what `auto` means */
export function bytesOfCacheType(type: CacheType, computeBytes: number): number {
  switch (type) {
    case "fp8":
    case "int8":
      return 1;
    case "fp32":
      return 4;
    case "auto":
      return computeBytes;
    case "fp16":
    case "bf16":
      return 2;
    default:
      return BLOCK_BYTES[type] / BLOCK_VALUES;
  }
}
