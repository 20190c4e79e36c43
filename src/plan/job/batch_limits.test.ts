import { describe, expect, test } from "vitest";
import { type Gpu, gpuNamed, gpuOfSize } from "../device/gpus.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import { batchLimits } from "./batch_limits.js";
import type { Engine } from "./options.js";

const LLAMA = {
  model_type: "llama",
  hidden_size: 1024,
  intermediate_size: 4096,
  num_hidden_layers: 4,
  num_attention_heads: 16,
  vocab_size: 32_000,
};

const limits = (engine: Engine, gpu: Gpu, given: object = {}, context = 4096, isWhole = false) =>
  Object.values(batchLimits({ engine, gpu }, { context, isWhole }, given));
const on = (name: string): Gpu => gpuNamed(name) as Gpu;

/** EngineArgs.get_batch_defaults of vLLM, of its OpenAI server. */
describe("vLLM's server computes and runs", () => {
  test.each(["h100", "h200", "b200", "mi300x", "h20"])("more on %s", (name) => {
    expect(limits("vllm", on(name))).toEqual([8192, 1024]);
  });
  test.each(["a100", "a100-40gb", "l40s", "4090", "t4"])("less on %s", (name) => {
    expect(limits("vllm", on(name))).toEqual([2048, 256]);
  });
  test("what fits a device of which only the size is given", () => {
    expect(limits("vllm", gpuOfSize(80 * 2 ** 30))).toEqual([8192, 1024]);
    expect(limits("vllm", gpuOfSize(69 * 2 ** 30))).toEqual([2048, 256]);
  });
  test("no more tokens than its sequences have, nor more sequences than tokens", () => {
    expect(limits("vllm", on("h100"), { maxSequences: 2 }, 448)).toEqual([896, 2]);
    expect(limits("vllm", on("h100"), { batchedTokens: 512 })).toEqual([512, 512]);
    expect(() => limits("vllm", on("l4"), { maxSequences: 4096 })).toThrow(
      /TM-E002 vllm refuses --max-num-seqs 4096 .*; add --batched-tokens 4096$/,
    );
  });
  test("a whole text, where nothing is cached", () => {
    expect(limits("vllm", on("l4"), {}, 8192, true)[0]).toBe(8192);
  });
});

test("SGLang's chunks follow the device's memory", () => {
  expect(
    ["t4", "4090", "l40s", "a100", "h200", "b200"].map((name) => limits("sglang", on(name))[0]),
  ).toEqual([2048, 2048, 4096, 8192, 8192, 16_384]);
});

describe("the plan names vLLM's defaults", () => {
  const assumed = (given: object, context = 4096): string => {
    const model = readShape(LLAMA, "llama", "llama");
    const serve = { engine: "vllm", context, ...given } as const;
    return planMemory(model, { mode: "serve", gpu: on("h100"), serve }).assumptions.join("; ");
  };
  const SERVER = "of vLLM's server for devices of 70 GiB and more";
  test.each<[object, number, string | null]>([
    [
      {},
      4096,
      `--batched-tokens and --max-num-seqs have the defaults ${SERVER}; vLLM's Python class LLM computes 16384 tokens per pass`,
    ],
    [
      { maxSequences: 8 },
      4096,
      `--batched-tokens has the default ${SERVER}; vLLM's Python class LLM computes 16384 tokens per pass`,
    ],
    // No more tokens than the sequences have: the same figure in both.
    [{ maxSequences: 2 }, 4096, `--batched-tokens has the default ${SERVER}`],
    [{ batchedTokens: 4096 }, 4096, `--max-num-seqs has the default ${SERVER}`],
    [{ batchedTokens: 4096, maxSequences: 8 }, 4096, null],
  ])("%j, with a context of %i", (given, context, sentence) => {
    const words = assumed(given, context)
      .split("; ")
      .filter((each) => /vLLM/.test(each));
    expect(words.join("; ")).toBe(sentence ?? "");
  });
});
