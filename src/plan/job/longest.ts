/**
 * The longest sequence that a library takes the model to be made for; 0: not known. Command-R has 8,192 in
 * `max_position_embeddings` and 131,072 in `model_max_length`.
 *
 * | library | reads |
 * |---|---|
 * | vllm | `model_max_length`, otherwise the smallest of the other names (`derive_max_model_len_and_key`) |
 * | sglang | `model_max_length` before `max_position_embeddings` (CONTEXT_LENGTH_KEYS) |
 * | llama.cpp | `model_max_length` of Cohere's families (convert_hf_to_gguf.py) |
 * | transformers, tgi, libraries that train | `max_position_embeddings` |
 */
import type { ModelShape } from "../shape/model_shape.js";
import type { Engine, PlanOptions } from "./options.js";

export function longestFor(
  { longestSequence, declaredLongest, family }: ModelShape,
  job: { readonly mode: PlanOptions["mode"]; readonly engine?: Engine },
): number {
  const { mode, engine } = job;
  const readsDeclared =
    mode === "serve" &&
    (engine === "vllm" ||
      engine === "sglang" ||
      (engine === "llama.cpp" && /^cohere2?$/.test(family)));
  return readsDeclared ? (declaredLongest ?? longestSequence) : longestSequence;
}
