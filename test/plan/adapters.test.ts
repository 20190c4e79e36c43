/** Adapters of PEFT as its adapter_config.json sets them: the counts of peft itself, which peft_counts.py wrote. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { modulePath } from "../../src/plan/blocks/adapter_details.js";
import { planOptions } from "../../src/plan/defaults.js";
import { ofAdapter } from "../../src/plan/files/adapter_config.js";
import type { TrainOptions } from "../../src/plan/job/options.js";
import { planMemory } from "../../src/plan/plan.js";
import { type JsonObject, ModelConfig } from "../../src/plan/shape/config.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { planTraining } from "../../src/plan/train/plan_training.js";
import { repository } from "../run.js";

interface Counts {
  readonly model: string;
  readonly adapter: JsonObject;
  readonly trainable: number;
  readonly trainableBytes: number;
  readonly allBytes: number;
}
const { models, cases } = JSON.parse(
  readFileSync(join(repository, "test/data/plan/peft.json"), "utf8"),
) as { models: Record<string, JsonObject>; cases: Record<string, Counts> };

const modelOf = (name: string) =>
  readShape({ ...models[name], torch_dtype: "bfloat16" }, name, name);
const requestOf = (adapter: JsonObject) => {
  const config = ofAdapter(new ModelConfig(adapter, "adapter_config.json"));
  return { mode: "train", ...config, train: { ...config.train, sequence: 32 } } as const;
};

describe("as peft counts a bf16 model with", () => {
  test.each(Object.entries(cases))("%s", (_, { model: name, adapter, ...counted }) => {
    const model = modelOf(name);
    const request = requestOf(adapter);
    const options = planOptions(model, request) as TrainOptions;
    const { peak } = planTraining(model, options);
    const { counts, weights, adapters, gradients, optimizer } = peak.states;
    expect(counts.trainable).toBe(counted.trainable);
    // autograd's gradients have the type of their parameters, and AdamW's two moments that of each.
    expect(gradients).toBe(counted.trainableBytes);
    expect(optimizer).toBe(2 * counted.trainableBytes);
    expect(weights + adapters).toBe(counted.allBytes);
    const { notes } = request as { notes?: readonly string[] };
    expect(notes).toBeUndefined();
  });
});

describe("what an adapter adds to a plan", () => {
  const llama = modelOf("llama");
  const planned = (changes: JsonObject) =>
    planMemory(
      llama,
      requestOf({ peft_type: "LORA", r: 8, target_modules: ["q_proj"], ...changes }),
    );
  const formula = (changes: JsonObject) =>
    planned(changes).parts.find(({ part }) => part === "adapters")?.formula ?? "";

  test("is named in its formula", () => {
    expect(formula({ modules_to_save: ["lm_head"] })).toMatch(/; 40960 of modules_to_save, beside/);
    expect(formula({ use_dora: true })).toMatch(/a magnitude for each output \(DoRA\)/);
    expect(formula({ rank_pattern: { q_proj: 2 } })).toMatch(/other ranks as in rank_pattern/);
    expect(formula({ trainable_token_indices: { embed_tokens: [1, 2] } })).toMatch(/2 rows of the/);
  });

  test("an expression that is more than a name is a caution, and is not run", () => {
    const hostile = `(${"a|".repeat(20)}a)+$`;
    const { limits } = planned({ rank_pattern: { [hostile]: 4 }, exclude_modules: ".*(k|v)_proj" });
    expect(limits.join()).toMatch(
      /leaves out: rank_pattern .* \(a regular expression\); exclude_mod/,
    );
  });

  test("names with numbers and escaped dots", () => {
    expect(modulePath("^model\\.layers\\.12\\.self_attn\\.q_proj$")).toEqual({
      name: "q_proj",
      layer: 12,
    });
    expect(modulePath(".*\\.v_proj")).toEqual({ name: "v_proj" });
    expect(modulePath("decoder.block.3.layer.1.EncDecAttention.k")).toEqual({
      name: "k",
      layer: 3,
      tower: "decoder",
    });
    expect(modulePath("(q|k)_proj")).toBeNull();
  });

  test("a rank that is not a number ends in one line", () => {
    expect(() => planned({ rank_pattern: { q_proj: "x" } })).toThrow(/TM-E085|not a whole number/);
  });
});
