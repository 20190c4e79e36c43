/**
 * Values that a nested configuration leaves out because they are its class's defaults (`to_diff_dict` of transformers):
 * https://github.com/huggingface/transformers, configuration_*.py of each family.
 */
import type { JsonObject, ModelConfig } from "./config.js";

const LLAMA: JsonObject = {
  vocab_size: 32000,
  hidden_size: 4096,
  intermediate_size: 11008,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  max_position_embeddings: 2048,
};

const QWEN2: JsonObject = {
  ...LLAMA,
  vocab_size: 151936,
  intermediate_size: 22016,
  num_key_value_heads: 32,
  max_position_embeddings: 32768,
};

const QWEN3: JsonObject = { ...QWEN2, head_dim: 128 };

const GEMMA: JsonObject = {
  vocab_size: 256000,
  hidden_size: 3072,
  intermediate_size: 24576,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 16,
  head_dim: 256,
  max_position_embeddings: 8192,
};

const GEMMA2: JsonObject = {
  ...GEMMA,
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: 26,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  sliding_window: 4096,
};

const CLIP_VISION: JsonObject = {
  hidden_size: 768,
  intermediate_size: 3072,
  num_hidden_layers: 12,
  num_attention_heads: 12,
  image_size: 224,
  patch_size: 32,
};

const CLIP_TEXT: JsonObject = {
  vocab_size: 49408,
  hidden_size: 512,
  intermediate_size: 2048,
  num_hidden_layers: 12,
  num_attention_heads: 8,
  max_position_embeddings: 77,
};

const SIGLIP_TEXT: JsonObject = {
  ...CLIP_TEXT,
  vocab_size: 32000,
  hidden_size: 768,
  intermediate_size: 3072,
  num_attention_heads: 12,
  max_position_embeddings: 64,
};

const QWEN_VISION: JsonObject = {
  depth: 32,
  hidden_size: 3584,
  num_heads: 16,
  patch_size: 14,
  spatial_merge_size: 2,
  temporal_patch_size: 2,
};

const GLM_VISION: JsonObject = {
  depth: 24,
  hidden_size: 1536,
  num_heads: 12,
  image_size: 336,
  patch_size: 14,
  out_hidden_size: 4096,
  intermediate_size: 13696,
};

const QWEN3_VISION: JsonObject = {
  ...QWEN_VISION,
  depth: 27,
  hidden_size: 1152,
  intermediate_size: 4304,
  patch_size: 16,
  num_position_embeddings: 2304,
};

const QWEN3_5: JsonObject = {
  vocab_size: 248320,
  num_attention_heads: 16,
  head_dim: 256,
  linear_conv_kernel_dim: 4,
  linear_key_head_dim: 128,
  linear_value_head_dim: 128,
  linear_num_key_heads: 16,
  linear_num_value_heads: 32,
  max_position_embeddings: 32768,
};

const DEFAULTS: Readonly<Record<string, JsonObject>> = {
  llama: LLAMA,
  mistral: {
    ...LLAMA,
    intermediate_size: 14336,
    num_key_value_heads: 8,
    max_position_embeddings: 131072,
  },
  qwen2: QWEN2,
  qwen3: QWEN3,
  gemma: GEMMA,
  gemma2: GEMMA2,
  gemma3_text: { ...GEMMA2, vocab_size: 262208, max_position_embeddings: 131072 },
  gemma3n_text: {
    ...GEMMA2,
    vocab_size: 262400,
    hidden_size: 2048,
    intermediate_size: 16384,
    num_hidden_layers: 35,
    num_key_value_heads: 2,
    max_position_embeddings: 32768,
    sliding_window: 512,
    final_logit_softcapping: 30,
    num_kv_shared_layers: 15,
    hidden_size_per_layer_input: 256,
    vocab_size_per_layer_input: 262144,
    altup_num_inputs: 4,
    laurel_rank: 64,
  },
  gemma4_text: {
    ...GEMMA2,
    vocab_size: 262144,
    num_hidden_layers: 30,
    max_position_embeddings: 131072,
    sliding_window: 512,
    hidden_size_per_layer_input: 256,
    vocab_size_per_layer_input: 262144,
  },
  qwen2_vl_text: {
    ...QWEN2,
    vocab_size: 152064,
    hidden_size: 8192,
    intermediate_size: 29568,
    num_hidden_layers: 80,
    num_attention_heads: 64,
    num_key_value_heads: 8,
  },
  qwen3_vl_text: { ...QWEN3, max_position_embeddings: 128000 },
  gemma4_vision: {
    ...CLIP_VISION,
    num_hidden_layers: 16,
    head_dim: 64,
    patch_size: 16,
    pooling_kernel_size: 3,
    position_embedding_size: 10240,
  },
  gemma4_audio: {
    hidden_size: 1024,
    num_hidden_layers: 12,
    num_attention_heads: 8,
    conv_kernel_size: 5,
    output_proj_dims: 1536,
  },
  glm4v_vision: GLM_VISION,
  glm4v_moe_vision: GLM_VISION,
  glm4v_text: {
    ...LLAMA,
    vocab_size: 151552,
    intermediate_size: 13696,
    num_hidden_layers: 40,
    num_key_value_heads: 2,
    max_position_embeddings: 32768,
  },
  clip_vision_model: CLIP_VISION,
  siglip_vision_model: { ...CLIP_VISION, patch_size: 16 },
  siglip2_vision_model: { ...CLIP_VISION, patch_size: 16, num_patches: 256 },
  clip_text_model: CLIP_TEXT,
  siglip_text_model: SIGLIP_TEXT,
  siglip2_text_model: SIGLIP_TEXT,
  qwen2_vl_vision: { ...QWEN_VISION, embed_dim: 1280, mlp_ratio: 4 },
  qwen2_5_vl_vision: {
    ...QWEN_VISION,
    intermediate_size: 3420,
    window_size: 112,
    fullatt_block_indexes: [7, 15, 23, 31],
  },
  qwen3_vl_vision: QWEN3_VISION,
  qwen3_5_vision: QWEN3_VISION,
  qwen3_5_text: {
    ...QWEN3_5,
    hidden_size: 4096,
    intermediate_size: 12288,
    num_hidden_layers: 32,
    num_key_value_heads: 4,
  },
  qwen3_5_moe_text: {
    ...QWEN3_5,
    hidden_size: 2048,
    num_hidden_layers: 40,
    num_key_value_heads: 2,
    moe_intermediate_size: 512,
    shared_expert_intermediate_size: 512,
    num_experts_per_tok: 8,
    num_experts: 256,
  },
};

export function defaultsOf(family: string): JsonObject {
  return DEFAULTS[family] ?? {};
}

/** A nested configuration as one of `family`, with the values that its class has by default. */
export function filledAs(config: ModelConfig, family: string): ModelConfig {
  return config.filledFrom(defaultsOf(family)).named(family);
}
