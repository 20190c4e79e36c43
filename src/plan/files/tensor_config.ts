/** A configuration guessed from the names and shapes of tensors, for a folder without config.json. */
import { notAModel } from "../../model/errors/plan_errors.js";
import type { JsonObject } from "../shape/config.js";
import type { WeightTensor } from "./safetensors.js";

/** Usual sizes of a head, the first that divides. */
const HEAD_SIZES = [128, 64, 96, 80, 256];

/** @throws TidemarkError TM-E085 where the tensors do not look like those of a decoder */
export function configFromTensors(tensors: readonly WeightTensor[], source: string): JsonObject {
  const layers = new Set<number>();
  for (const { name } of tensors) {
    const [, index] = /(?:^|\.)(?:layers?|h|blocks?)\.(\d{1,4})\./.exec(name) ?? [];
    if (index !== undefined) {
      layers.add(Number(index));
    }
  }
  const shapeOf = (pattern: RegExp): readonly number[] | undefined =>
    tensors.find(({ name, shape }) => pattern.test(name) && shape.length === 2)?.shape;
  const embedding = shapeOf(
    /(?:embed_tokens|wte|tok_embeddings|word_embeddings|token_embedding|embed_in)\.weight$/,
  );
  const [vocabulary, hidden] = embedding ?? [];
  if (vocabulary === undefined || hidden === undefined || layers.size === 0) {
    throw notAModel(
      source,
      "it has no config.json, and its tensors have no embedding or numbered layers",
    );
  }
  const [keys] = shapeOf(/(?:k_proj|\.wk|key)\.weight$/) ?? [hidden];
  const [queries = hidden] = shapeOf(/(?:q_proj|\.wq|query)\.weight$/) ?? [hidden];
  const head =
    HEAD_SIZES.find((size) => queries % size === 0 && (keys ?? hidden) % size === 0) ?? queries;
  const up = shapeOf(/(?:up_proj|gate_proj|w1|fc1|c_fc|fc_in|dense_h_to_4h)\.weight$/);
  const width =
    up === undefined ? 4 * hidden : Math.max(...up) === hidden ? Math.min(...up) : Math.max(...up);
  return {
    model_type: "",
    hidden_size: hidden,
    vocab_size: vocabulary,
    num_hidden_layers: layers.size,
    num_attention_heads: queries / head,
    num_key_value_heads: Math.max(1, (keys ?? hidden) / head),
    head_dim: head,
    intermediate_size: width,
    tie_word_embeddings: shapeOf(/(?:lm_head|output|embed_out)\.weight$/) === undefined,
    torch_dtype:
      DTYPES[
        embedding === undefined
          ? ""
          : (tensors.find(({ shape }) => shape === embedding)?.dtype ?? "")
      ] ?? "bfloat16",
  };
}

const DTYPES: Readonly<Record<string, string>> = {
  F32: "float32",
  F16: "float16",
  BF16: "bfloat16",
};
