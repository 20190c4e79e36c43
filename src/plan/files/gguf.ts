/**
 * Headers of GGUF files (ggml, docs/gguf.md), versions 2 and 3:
 *
 *   4 bytes  "GGUF"         u32  version
 *   u64      tensors        u64  metadata entries
 *   entries  key (u64 length, bytes), u32 type, value
 *   tensors  name, u32 dimensions, u64 each, u32 type, u64 offset
 */
import { notAModel } from "../../model/errors/plan_errors.js";
import type { JsonObject } from "../shape/config.js";
import type { FileParts } from "../shape/model_shape.js";
import { readPiece, requireWhole } from "./bounded.js";

/** Headers hold whole vocabularies. */
const LARGEST_HEADER = 256 * 2 ** 20;
const PIECE = 4 * 2 ** 20;
const MOST_TENSORS = 200_000;
const MOST_ENTRIES = 100_000;
const LONGEST_NAME = 2 ** 20;

/** Bytes and weights of one block, by the number of the type (ggml.h). */
const TYPES: Readonly<Record<number, readonly [bytes: number, weights: number]>> = {
  0: [4, 1],
  1: [2, 1],
  2: [18, 32],
  3: [20, 32],
  6: [22, 32],
  7: [24, 32],
  8: [34, 32],
  10: [84, 256],
  11: [110, 256],
  12: [144, 256],
  13: [176, 256],
  14: [210, 256],
  15: [292, 256],
  16: [66, 256],
  17: [74, 256],
  18: [98, 256],
  19: [50, 256],
  20: [18, 32],
  21: [110, 256],
  22: [82, 256],
  23: [136, 256],
  24: [1, 1],
  25: [2, 1],
  26: [4, 1],
  28: [8, 1],
  29: [56, 256],
  30: [2, 1],
  39: [17, 32],
};

export interface GgufHeader {
  /** As a configuration with the names of transformers. */
  readonly config: JsonObject;
  readonly parameters: number;
  readonly bytes: number;
  readonly parts: FileParts;
}

/** @throws TidemarkError TM-E004, TM-E085 */
export function ggufHeader(path: string): GgufHeader {
  const reader = new GgufReader(path);
  if (reader.bytes(4).toString("latin1") !== "GGUF") {
    throw notAModel(path, "it does not begin with GGUF");
  }
  const version = reader.u32();
  if (version !== 2 && version !== 3) {
    throw notAModel(path, `GGUF version ${version}; 2 and 3 are known`);
  }
  const tensors = reader.count(MOST_TENSORS, "tensors");
  const entries = reader.count(MOST_ENTRIES, "metadata entries");
  const values = new Map<string, unknown>();
  for (let entry = 0; entry < entries; entry++) {
    const key = reader.text();
    values.set(key, reader.value(reader.u32(), 0));
  }
  let parameters = 0;
  let bytes = 0;
  let vocabulary = 0;
  let hasOutput = false;
  let embeddingBytes = 0;
  let hasLatentRows = false;
  const layerBytes: number[] = [];
  let dataBytes = 0;
  for (let tensor = 0; tensor < tensors; tensor++) {
    const { name, sizes, type, offset } = reader.tensor();
    const elements = sizes.reduce((product, size) => product * size, 1);
    const [blockBytes, weights] = TYPES[type] ?? [2, 1];
    parameters += elements;
    const own = Math.ceil(elements / weights) * blockBytes;
    bytes += own;
    dataBytes = TYPES[type] === undefined ? dataBytes : Math.max(dataBytes, offset + own);
    const [, layer] = /^blk\.(\d{1,4})\./.exec(name) ?? [];
    if (layer !== undefined) {
      layerBytes[Number(layer)] = (layerBytes[Number(layer)] ?? 0) + own;
    } else if (/^(?:per_layer_)?token_embd\./.test(name)) {
      embeddingBytes += own;
    }
    if (name === "token_embd.weight") {
      vocabulary = sizes[1] ?? 0;
    }
    hasLatentRows ||= /^blk\.\d{1,4}\.attn_k_b\.weight$/.test(name);
    hasOutput ||= name === "output.weight";
  }
  if (!Number.isSafeInteger(parameters)) {
    throw notAModel(path, "its tensors have impossible sizes");
  }
  const alignment = Number(values.get("general.alignment") ?? 32);
  requireWhole(path, Math.ceil(reader.at / alignment) * alignment, dataBytes);
  return {
    config: configOf(path, values, { vocabulary, hasOutput }),
    parameters,
    bytes,
    parts: {
      embeddingBytes,
      layerBytes: Array.from(layerBytes, (each) => each ?? 0),
      hasLatentRows,
    },
  };
}

/** Names of GGUF's metadata, below the architecture's, and of transformers. */
const NAMES: readonly (readonly [string, string])[] = [
  ["block_count", "num_hidden_layers"],
  ["embedding_length", "hidden_size"],
  ["feed_forward_length", "intermediate_size"],
  ["attention.head_count", "num_attention_heads"],
  ["attention.head_count_kv", "num_key_value_heads"],
  ["attention.key_length", "head_dim"],
  ["attention.sliding_window", "sliding_window"],
  ["attention.kv_lora_rank", "kv_lora_rank"],
  ["attention.q_lora_rank", "q_lora_rank"],
  ["context_length", "max_position_embeddings"],
  ["expert_count", "num_experts"],
  ["expert_used_count", "num_experts_per_tok"],
  ["expert_feed_forward_length", "moe_intermediate_size"],
  ["expert_shared_count", "n_shared_experts"],
  ["leading_dense_block_count", "first_k_dense_replace"],
  ["final_logit_softcapping", "final_logit_softcapping"],
  ["attn_logit_softcapping", "attn_logit_softcapping"],
];

const FAMILIES: Readonly<Record<string, string>> = {
  qwen2moe: "qwen2_moe",
  qwen3moe: "qwen3_moe",
  deepseek2: "deepseek_v2",
  gemma3: "gemma3_text",
  gptneox: "gpt_neox",
  "command-r": "cohere",
  "gpt-oss": "gpt_oss",
  phi2: "phi",
};

/** Files beside that of the model, by their type or architecture (llama.cpp, gguf-py/gguf/constants.py). */
const PARTS: Readonly<Record<string, string>> = {
  adapter: "an adapter",
  mmproj: "an encoder of images or speech",
  clip: "an encoder of images or speech",
};

function configOf(
  path: string,
  values: ReadonlyMap<string, unknown>,
  { vocabulary, hasOutput }: { vocabulary: number; hasOutput: boolean },
): JsonObject {
  const architecture = values.get("general.architecture");
  if (typeof architecture !== "string") {
    throw notAModel(path, "its metadata names no architecture");
  }
  const part = PARTS[String(values.get("general.type"))] ?? PARTS[architecture];
  if (part !== undefined) {
    throw notAModel(path, `it holds ${part}, without the model that reads it`);
  }
  const config: Record<string, unknown> = {
    model_type: FAMILIES[architecture] ?? architecture,
    tie_word_embeddings: !hasOutput,
    torch_dtype: "float16",
    ...(vocabulary > 0 ? { vocab_size: vocabulary } : {}),
  };
  for (const [from, to] of NAMES) {
    const value = values.get(`${architecture}.${from}`);
    // A list has one number for each layer: the largest stands for all.
    const number = Array.isArray(value)
      ? Math.max(0, ...value.filter((each) => typeof each === "number"))
      : value;
    if (typeof number === "number" && number > 0) {
      config[to] = number;
    }
  }
  if (config.kv_lora_rank !== undefined) {
    const rotary = Number(values.get(`${architecture}.rope.dimension_count`) ?? 64);
    const whole = Number(
      values.get(`${architecture}.attention.key_length_mla`) ?? config.head_dim ?? 192,
    );
    config.qk_rope_head_dim = rotary;
    config.qk_nope_head_dim = whole - rotary;
    config.v_head_dim = Number(
      values.get(`${architecture}.attention.value_length_mla`) ??
        values.get(`${architecture}.attention.value_length`) ??
        128,
    );
    delete config.head_dim;
  }
  return config;
}

class GgufReader {
  readonly #path: string;
  #piece: Buffer;
  /** Of the piece's first byte in the file. */
  #start = 0;
  #at = 0;

  constructor(path: string) {
    this.#path = path;
    this.#piece = readPiece(path, 0, PIECE);
  }

  /** Of the next byte in the file. */
  get at(): number {
    return this.#at;
  }

  bytes(length: number): Buffer {
    const from = this.#at - this.#start;
    if (from + length > this.#piece.length) {
      if (this.#at + length > LARGEST_HEADER) {
        throw notAModel(this.#path, "its header is larger than 256 MiB");
      }
      this.#piece = readPiece(this.#path, this.#at, Math.max(PIECE, length));
      this.#start = this.#at;
      if (this.#piece.length < length) {
        throw notAModel(this.#path, "it is cut off within its header");
      }
    }
    const start = this.#at - this.#start;
    this.#at += length;
    return this.#piece.subarray(start, start + length);
  }

  u32(): number {
    return this.bytes(4).readUInt32LE(0);
  }

  u64(): number {
    return Number(this.bytes(8).readBigUInt64LE(0));
  }

  count(most: number, what: string): number {
    const count = this.u64();
    if (count > most) {
      throw notAModel(this.#path, `${count} ${what}`);
    }
    return count;
  }

  text(): string {
    return this.bytes(this.count(LONGEST_NAME, "bytes in one text")).toString("utf8");
  }

  tensor(): { name: string; sizes: number[]; type: number; offset: number } {
    const name = this.text();
    const dimensions = this.u32();
    if (dimensions > 8) {
      throw notAModel(this.#path, `${dimensions} dimensions`);
    }
    const sizes = Array.from({ length: dimensions }, () => this.u64());
    const type = this.u32();
    return { name, sizes, type, offset: this.u64() };
  }

  /** A value of a type; of arrays only numbers are kept. */
  value(type: number, depth: number): unknown {
    switch (type) {
      case 0:
        return this.bytes(1).readUInt8(0);
      case 1:
        return this.bytes(1).readInt8(0);
      case 2:
        return this.bytes(2).readUInt16LE(0);
      case 3:
        return this.bytes(2).readInt16LE(0);
      case 4:
        return this.u32();
      case 5:
        return this.bytes(4).readInt32LE(0);
      case 6:
        return this.bytes(4).readFloatLE(0);
      case 7:
        return this.bytes(1).readUInt8(0) !== 0;
      case 8:
        return this.text();
      case 9:
        return this.#array(depth);
      case 10:
        return this.u64();
      case 11:
        return Number(this.bytes(8).readBigInt64LE(0));
      case 12:
        return this.bytes(8).readDoubleLE(0);
      default:
        throw notAModel(this.#path, `metadata of type ${type}`);
    }
  }

  #array(depth: number): unknown[] {
    if (depth > 3) {
      throw notAModel(this.#path, "arrays within arrays");
    }
    const type = this.u32();
    const count = this.count(LARGEST_HEADER, "array entries");
    const kept: unknown[] = [];
    for (let entry = 0; entry < count; entry++) {
      const value = this.value(type, depth + 1);
      if (kept.length < 2000 && typeof value === "number") {
        kept.push(value);
      }
    }
    return kept;
  }
}
