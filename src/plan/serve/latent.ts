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
import type { ModelShape } from "../shape/model_shape.js";

/** `rows and values`: the compressed values a second time, in the type of the values. */
export type LatentCache = "rows" | "rows and values" | "heads" | "padded heads";

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

interface OlderCache {
  readonly versions: string;
  readonly keeps: string;
  readonly latent: LatentCache;
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
        latent: "heads",
      };
    case "llama.cpp":
      return {
        versions: "llama.cpp before January 2026",
        keeps: "the compressed values a second time",
        latent: "rows and values",
      };
    default:
      return null;
  }
}
