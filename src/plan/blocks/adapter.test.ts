import { expect, test } from "vitest";
import { planOptions } from "../defaults.js";
import type { TrainOptions } from "../job/options.js";
import { readShape } from "../shape/read_shape.js";
import { trainingRules } from "../train/block_rules.js";
import { NO_DETAILS } from "./adapter_details.js";
import { modelTape } from "./model_tape.js";

/** One matrix of `inputs` x `outputs` with DoRA. */
function normBytes(inputs: number, outputs: number, words: Partial<TrainOptions>): number {
  const values = {
    model_type: "llama",
    hidden_size: inputs,
    intermediate_size: outputs,
    num_hidden_layers: 1,
    num_attention_heads: 4,
    vocab_size: 64,
  };
  const model = readShape(values, "one", "one");
  const options = planOptions(model, {
    mode: "train",
    method: "lora",
    dtype: words.dtype ?? "fp32",
    weights: words.fp32Weights === true ? "fp32" : "16bit",
    train: {
      batch: 1,
      sequence: 4,
      adapterTargets: ["gate_proj"],
      adapterDetails: { ...NO_DETAILS, dora: true },
    },
  }) as TrainOptions;
  const { tape } = modelTape(model, trainingRules(model, options), { index: 0, count: 1 });
  return tape.operations.find(({ name }) => name === "dora.base")?.forwardTemporary ?? 0;
}

/** What PEFT 0.21 has live at once beyond LoRA without DoRA, on the CPU. */
test.each([
  [512, 768, { dtype: "fp32", fp32Weights: true }, 5_758_848],
  [1024, 256, { dtype: "fp32", fp32Weights: true }, 7_364_480],
  [512, 768, { dtype: "bf16" }, 6_807_488],
  [768, 512, { dtype: "bf16" }, 7_468_992],
  [1024, 256, { dtype: "bf16" }, 6_819_776],
  [512, 768, { dtype: "bf16", fp32Weights: true }, 4_481_024],
  [1024, 256, { dtype: "bf16", fp32Weights: true }, 6_320_128],
] as const)("DoRA's norm of %i x %i in %o", (inputs, outputs, words, bytes) => {
  expect(Math.abs(normBytes(inputs, outputs, words) / bytes - 1)).toBeLessThan(0.01);
});
