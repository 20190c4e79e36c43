import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { PlanRequest } from "../defaults.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";

const url = (path: string): URL => new URL(`../../../${path}`, import.meta.url);
const CASES = JSON.parse(readFileSync(url("bench/plan_device_cases.json"), "utf8")).models;
const MODELS = JSON.parse(readFileSync(url("test/data/plan/models.json"), "utf8"));
const MIB = 2 ** 20;

/**
 * Bytes that torch 2.11 allocated at most on an H100 with transformers 5.17 (bench/plan_measured_further.json, whose cases
 * have the same ids), one row for each rule that these measurements taught.
 */
const MEASURED: [string, string, number, PlanRequest][] = [
  [
    "r02: experts under autocast are multiplied in the type of their weights",
    "olmoe-small",
    15_430_311_936,
    { mode: "train", dtype: "bf16", weights: "fp32", train: { batch: 2, sequence: 2048 } },
  ],
  [
    "r09: sdpa reads one head of keys as it lies in the fused product",
    "bigcode-1b",
    11_845_029_376,
    { mode: "train", dtype: "bf16", weights: "16bit", train: { batch: 2, sequence: 2048 } },
  ],
  [
    "r10: queries and keys of GPT-J are multiplied in fp32",
    "gptj-small",
    11_642_551_808,
    {
      mode: "train",
      attention: "eager",
      dtype: "bf16",
      weights: "16bit",
      train: { batch: 2, sequence: 1024 },
    },
  ],
  [
    "r14: under autocast, a loss without float() keeps log-probabilities in both types",
    "xlm-roberta-base",
    31_854_665_728,
    { mode: "train", dtype: "bf16", weights: "fp32", train: { batch: 16, sequence: 512 } },
  ],
  [
    "r19: a bias with a gradient has no fused kernel, and one without is a mask for each head",
    "t5-v1.1-base",
    19_753_223_680,
    { mode: "train", dtype: "bf16", weights: "fp32", train: { batch: 8, sequence: 512 } },
  ],
  [
    "e03: generate() gives each sequence a mask of its window",
    "cohere2-small",
    7_982_447_104,
    { mode: "serve", dtype: "bf16", serve: { context: 16_384, concurrency: 4 } },
  ],
  [
    "e07: scores lie beside those that are joined with sinks",
    "gpt-oss-small",
    8_147_113_984,
    {
      mode: "serve",
      attention: "eager",
      dtype: "bf16",
      serve: { context: 4096, concurrency: 4 },
    },
  ],
];

test.each(MEASURED)("%s", (_what, name, bytes, request) => {
  const values = CASES[name] ?? MODELS[name].config;
  const { memory } = planMemory(readShape(values, name, name), {
    padded: false,
    attention: "sdpa",
    ...request,
  });
  expect(Math.abs(memory.allocated.bytes / bytes - 1), `${memory.allocated.bytes}`).toBeLessThan(
    0.05,
  );
});

test("LLM.int8() keeps the input of each matrix through checkpoints, in the input's type", () => {
  const model = readShape(MODELS["llama-3.1-8b"].config, "llama-3.1-8b", "llama-3.1-8b");
  const planned = (quantize: "int8" | "nf4"): number =>
    planMemory(model, {
      mode: "train",
      quantize,
      dtype: "bf16",
      padded: false,
      train: { method: "qlora", batch: 1, sequence: 1024 },
    }).memory.allocated.bytes;
  const [hidden, width, layers, tokens] = [4096, 14_336, 32, 1024];
  // By hand: the rows before q, k and v, before the MLP's two products and before its last one in fp32.
  const kept = layers * tokens * (2 * hidden + width) * 4;
  const weights = (1 - 1 / 2 - 4 / 64) * 6.98e9;
  const more = planned("int8") - planned("nf4") - weights;
  expect(more / MIB).toBeGreaterThan((0.8 * kept) / MIB);
  expect(more / MIB).toBeLessThan((1.3 * kept) / MIB);
});
