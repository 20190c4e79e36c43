/**
 * What engines keep of latent attention (MLA).
 *
 * | engine | kept of one token in one layer | source |
 * |---|---|---|
 * | transformers from 5.15 on, vLLM, SGLang | the compressed row | modeling_deepseek_v3.py; vllm/v1/attention/backends/mla |
 * | transformers up to 5.14 | keys and values of each head | modeling_deepseek_v3.py |
 * | llama.cpp since January 2026 | the compressed row, of files with `attn_k_b` | llama.cpp, pull request 19067 |
 * | llama.cpp since April 2025 | the same, and the compressed values once more | pull request 12801 |
 * | llama.cpp, older files | keys and values of each head | pull request 12801 |
 * | TGI | keys and values of each head, both as wide as the wider one | flash_deepseek_v2_modeling.py, head_pad_size |
 */
import type { ServeOptions } from "../job/options.js";
import type { AttentionShape, ModelShape } from "../shape/model_shape.js";

export type LatentCache = "rows" | "heads" | "padded heads";

export function latentCache({ stored }: ModelShape, { engine }: ServeOptions): LatentCache {
  switch (engine) {
    case "tgi":
      return "padded heads";
    case "llama.cpp":
      return stored.fileParts?.hasLatentRows === false ? "heads" : "rows";
    default:
      return "rows";
  }
}

/** Of one token on one device, in versions that keep more. */
interface OlderCache {
  readonly versions: string;
  readonly keeps: string;
  readonly bytesOf: (shape: AttentionShape, itemBytes: number) => number;
}

/** Versions of the engine that keep more than the plan; null where there are none. */
export function olderLatentCache(model: ModelShape, options: ServeOptions): OlderCache | null {
  if (latentCache(model, options) !== "rows") {
    return null;
  }
  switch (options.engine) {
    case "transformers":
      return {
        versions: "transformers before 5.15",
        keeps: "keys and values of each head",
        bytesOf: ({ heads, headSize, valueHeadSize = headSize }, bytes) =>
          (heads / options.tensor) * (headSize + valueHeadSize) * bytes,
      };
    case "llama.cpp":
      return {
        versions: "llama.cpp before January 2026",
        keeps: "the compressed values a second time",
        bytesOf: ({ latent }, bytes) =>
          (2 * (latent?.kvRank ?? 0) + (latent?.rotarySize ?? 0)) * bytes,
      };
    default:
      return null;
  }
}
