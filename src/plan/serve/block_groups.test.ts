/** vLLM's blocks, compared with lines of its logs. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readShape } from "../shape/read_shape.js";
import { plainFormat } from "./attention_cache.js";
import { blockGroups, blocksOfRequest, blocksOfRequests, tokensOfBlocks } from "./block_groups.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);
const GIB = 2 ** 30;

const groupsOf = (name: string, batchedTokens: number, changes: object = {}) => {
  const model = readShape({ ...MODELS[name].config, ...changes }, name, name);
  const blocks = blockGroups(model, plainFormat(2), batchedTokens);
  if (blocks === null) {
    throw new Error(`${name} has no groups`);
  }
  return blocks;
};

/**
 * vLLM 0.13, compile range to 8,192: "Available KV cache memory: 25.39 GiB", "Add 2 padding layers, may waste at most 9.09%",
 * "GPU KV cache size: 950,864 tokens", "Maximum concurrency for 2,048 tokens per request: 461.21x".
 */
test("a log of Gemma 3 1B: 4 layers with all tokens, 22 with a window in 6 groups", () => {
  const blocks = groupsOf("gemma3-1b", 8192);
  expect(blocks).toEqual({
    tokens: 16,
    bytes: 4 * 16 * 2 * 256 * 2,
    batchedTokens: 8192,
    groups: expect.arrayContaining([{ count: 1 }, { count: 6, window: 512 }]),
  });
  expect(blocksOfRequest(blocks, 2048)).toBe(128 + 6 * 129);
  // The log rounds to 0.01 GiB.
  const all = Math.floor((25.392 * GIB) / blocks.bytes);
  expect(Math.abs(tokensOfBlocks(blocks, all) / 950_864 - 1)).toBeLessThan(0.0005);
  expect(Math.abs(all / blocksOfRequest(blocks, 2048) / 461.21 - 1)).toBeLessThan(0.0005);
});

/** Of Qwen3 0.6B: 4.72 GiB are 44,224 tokens, 43.19x of 1,024, 10.80x of 4,096. */
test("a log of a model whose layers are alike", () => {
  const blocks = groupsOf("qwen3-0.6b", 2048);
  const all = tokensOfBlocks(blocks, Math.floor((4.7235 * GIB) / blocks.bytes)) / 16;
  expect(Math.abs((all * 16) / 44_224 - 1)).toBeLessThan(0.001);
  expect(44_224 / 16 / blocksOfRequest(blocks, 1024)).toBeCloseTo(43.19, 2);
  expect(44_224 / 16 / blocksOfRequest(blocks, 4096)).toBeCloseTo(10.8, 2);
});

test("windows alone are one group, and two kinds of nearly equal numbers are padded to the larger one", () => {
  expect(
    groupsOf("llama-3.1-8b", 2048, { model_type: "mistral", sliding_window: 4096 }).groups,
  ).toEqual([{ count: 1, window: 4096 }]);
  expect(groupsOf("gpt-oss-20b", 2048).groups.map(({ count }) => count)).toEqual([1, 1]);
  expect(
    groupsOf("gpt-oss-20b", 2048, { num_hidden_layers: 25, layer_types: undefined }).bytes,
  ).toBe(13 * 16 * 2 * 8 * 64 * 2);
});

test("a chunk is held beside the window, up to the whole request", () => {
  const blocks = groupsOf("gpt-oss-20b", 2048);
  expect(blocksOfRequest(blocks, 1024)).toBe(64 + 65);
  expect(blocksOfRequest(blocks, 131_072)).toBe(8192 + Math.ceil((127 + 2048) / 16) + 1);
});

test("blocks of attention are as large as a state", () => {
  const blocks = groupsOf("jamba", 2048);
  const { tokens, bytes, groups } = blocks;
  expect(groups.filter(({ state }) => state)).toEqual([{ count: 7, state: true }]);
  expect(tokens % 16).toBe(0);
  // One layer: states in fp32 and the convolution, of which none is larger than the block.
  const { hidden_size: hidden } = MODELS.jamba.config;
  expect(bytes / 4).toBeGreaterThanOrEqual(2 * hidden * (16 * 4 + 4 * 2));
  expect(blocksOfRequest(blocks, tokens * 3)).toBe(3 + 7);
});

test("of several requests, one is in its prefill, and the others have their windows", () => {
  const blocks = groupsOf("gemma-2-9b", 2048);
  const [prefill, decoding] = [512 + 385, 512 + 257];
  expect(blocksOfRequest(blocks, 8192)).toBe(prefill);
  expect(blocksOfRequests(blocks, 8192, 2)).toBe(prefill + decoding);
});
