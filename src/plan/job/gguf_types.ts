/**
 * Types of weights that `--quantize` means with llama.cpp (ggml-common.h), and what llama-quantize leaves wider: the matrix
 * of the output, and the table of tokens where the two are one (llama-quant.cpp, `llama_tensor_get_type`). Vectors and
 * routers of experts stay in fp32.
 *
 * | block | bytes |
 * |---|---|
 * | Q4_0: 32 weights | 18 |
 * | Q8_0: 32 weights | 34 |
 * | Q6_K: 256 weights | 210 |
 */
import type { Quantization } from "./options.js";

export interface GgufTypes {
  readonly name: string;
  readonly bytesPerWeight: number;
  readonly output: string;
  readonly outputBytesPerWeight: number;
}

const Q8_0 = 34 / 32;
const Q6_K_BLOCK = 256;

/** @param columns of the output's matrix: whole blocks of Q6_K, or Q8_0 */
export function ggufTypes(quantize: Quantization, columns: number): GgufTypes | null {
  const eight = { output: "Q8_0", outputBytesPerWeight: Q8_0 };
  switch (quantize) {
    case "int4":
      return {
        name: "Q4_0",
        bytesPerWeight: 18 / 32,
        ...(columns % Q6_K_BLOCK === 0
          ? { output: "Q6_K", outputBytesPerWeight: 210 / Q6_K_BLOCK }
          : eight),
      };
    case "int8":
      return { name: "Q8_0", bytesPerWeight: Q8_0, ...eight };
    default:
      return null;
  }
}
