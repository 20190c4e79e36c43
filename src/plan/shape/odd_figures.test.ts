/** Figures that contradict what they count: refused in one line, or planned with a remark of what was assumed. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readShape } from "./read_shape.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
) as Record<string, { config: Record<string, unknown> }>;

const read = (name: string, changes: object) =>
  readShape({ ...MODELS[name]?.config, ...changes }, name, "config.json");

test.each<[string, object, RegExp]>([
  ["llama-3.1-8b", { vocab_size: 0 }, /vocab_size is 0/],
  ["llama-3.1-8b", { intermediate_size: 0 }, /intermediate_size is 0/],
  ["llama-3.1-8b", { num_hidden_layers: 2.5 }, /num_hidden_layers is 2.5/],
  ["llama-3.1-8b", { num_key_value_heads: 3 }, /3 key-value heads do not divide 32 heads/],
  ["llama-3.1-8b", { num_key_value_heads: 64 }, /64 key-value heads do not divide 32 heads/],
  ["llama-3.1-8b", { head_dim: 7 }, /heads of 7 do not have the halves/],
  ["llama-3.1-8b", { max_position_embeddings: -1 }, /max_position_embeddings is -1/],
  ["llama-3.1-8b", { sliding_window: -1 }, /sliding_window is -1/],
  ["llama-3.1-8b", { attention_dropout: 1.5 }, /attention_dropout is 1.5, not a share/],
  ["llama-3.1-8b", { partial_rotary_factor: 2 }, /partial_rotary_factor is 2, not a share/],
  ["llama-3.1-8b", { rope_scaling: "linear" }, /rope_scaling is not an object/],
  ["llama-3.1-8b", { rope_scaling: { rope_type: "yarn", factor: -4 } }, /factor is -4/],
  ["mixtral", { num_experts_per_tok: 9 }, /9 experts for each token of 8/],
  ["mixtral", { num_experts_per_tok: 0 }, /num_experts_per_tok is 0/],
  ["deepseek-v3", { n_group: 3 }, /3 groups \(n_group\) do not divide 256 experts/],
  ["deepseek-v3", { n_group: 8, topk_group: 100 }, /topk_group is 100 of 8 groups/],
  ["gpt2", { n_positions: 0 }, /n_positions is 0/],
  ["opt-1.3b", { max_position_embeddings: 0 }, /max_position_embeddings is 0/],
  ["bart-base", { max_position_embeddings: 0 }, /max_position_embeddings is 0/],
  ["t5-small", { num_decoder_layers: 0 }, /num_decoder_layers is 0/],
  ["whisper-small", { max_source_positions: 0 }, /max_source_positions is 0/],
  ["vit-b", { patch_size: 300 }, /patches of 300 in an image of 224/],
  ["mamba-130m", { state_size: 0 }, /state_size is 0/],
  ["mamba2-130m", { num_heads: 7, head_dim: 64 }, /num_heads 7 of head_dim 64 are not 1536 wide/],
  ["mamba2-130m", { num_heads: 24, head_dim: 64, n_groups: 5 }, /n_groups 5 does not divide/],
  ["jamba", { attn_layer_offset: 100 }, /attn_layer_offset 100 is not below attn_layer_period 8/],
  ["jamba", { expert_layer_period: 0 }, /expert_layer_period is 0/],
  ["sd15-unet", { norm_num_groups: 0 }, /norm_num_groups is 0/],
  ["dit-xl-2", { patch_size: 0 }, /patch_size is 0/],
])("%s %j is refused", (name, changes, message) => {
  expect(() => read(name, changes)).toThrow(message);
  expect(() => read(name, changes)).toThrow(/^TM-E085 config\.json[^\n]*$/);
});

test.each<[string, object, RegExp]>([
  ["llama-3.1-8b", { max_position_embeddings: 0 }, /is 0: .* no longest sequence/],
  ["mixtral", { sliding_window: 0 }, /sliding_window is 0: .* see the whole sequence/],
  ["llama-3.1-8b", { rope_scaling: { type: "linear", factor: 0.5 } }, /factor 0.5, below 1/],
  ["llama-3.1-8b", { rope_scaling: { type: "yarn", factor: 1e9 } }, /has the factor 1000000000/],
  [
    "llama-3.1-8b",
    { rope_scaling: { type: "yarn", factor: 4, original_max_position_embeddings: 999_999 } },
    /original_max_position_embeddings 999999, but max_position_embeddings is 131072/,
  ],
  ["deepseek-v3", { first_k_dense_replace: 100 }, /no layer has any of the 256 experts \(first_k/],
  ["qwen3-30b-a3b", { decoder_sparse_step: 100 }, /no layer has any of the 128 experts/],
  ["qwen3-30b-a3b", { mlp_only_layers: [100] }, /layers that the model does not have: 100/],
  ["gemma-2-9b", { layer_types: ["sliding_attention"] }, /layer_types names 1 of 42 layers/],
  ["gemma3-1b", { sliding_window_pattern: 100 }, /pattern is 100, and there are 26 layers/],
])("%s %j is planned with a remark", (name, changes, remark) => {
  expect(read(name, changes).remarks.join("; ")).toMatch(remark);
});

test.each(Object.keys(MODELS))("%s as it is published has no odd figure", (name) => {
  const known = /one image a sequence|planned with|size of its|Prompts|pixels|images of|prompt/;
  expect(read(name, {}).remarks.filter((remark) => !known.test(remark))).toEqual([]);
});
