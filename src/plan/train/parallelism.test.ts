/** Tensor, sequence, context, pipeline, data and expert parallelism. */
import { describe, expect, it } from "vitest";
import { modelTape } from "../blocks/model_tape.js";
import { type PlanRequest, planOptions } from "../defaults.js";
import { requireDivisible } from "../divisible.js";
import type { Library, TrainOptions } from "../job/options.js";
import { limitsOf } from "../limits.js";
import { readShape } from "../shape/read_shape.js";
import { trainingRules } from "./block_rules.js";
import { communicationOf } from "./communication.js";
import { formulaIn, MODELS, modelOf, peakOf, savedOf } from "./divided_peaks.fixture.js";

describe("tensor and sequence parallelism", () => {
  it("divides matrices, and norms only with sequence parallelism", () => {
    const one = peakOf("llama-3.1-8b");
    const tensor = peakOf("llama-3.1-8b", { tensor: 4 });
    const both = peakOf("llama-3.1-8b", { tensor: 4, sequenceParallel: true });
    expect(savedOf(tensor, "mlp")).toBe(savedOf(one, "mlp") / 4);
    expect(savedOf(tensor, "norm")).toBe(savedOf(one, "norm"));
    // The input of the final matrix is gathered, and so are those of attention and MLP, which autograd saves.
    expect(savedOf(both, "norm")).toBeLessThan(savedOf(one, "norm") / 3);
    const gathered = 2 * 32 * 2048 * 4096 * 2;
    const shared = savedOf(tensor, "mlp") + savedOf(tensor, "attention");
    const logits = 2048 * 128_256 * 4;
    const rest = both.simulation.savedBytes - gathered - shared - logits / 4;
    // transformers, which has no sequence parallelism, gathers the logits.
    expect(rest).toBeLessThan(0.3 * (tensor.simulation.savedBytes - shared - logits));
    expect(tensor.states.weights).toBe(both.states.weights);
  });

  it("divides what the plans of transformers name, and says what versions differ in", () => {
    const table = 50_304 * 2048 * 2;
    // GPT-NeoX calls its table embed_in, which no plan names.
    const [neox, megatron] = [false, true].map(
      (sequenceParallel) => peakOf("pythia-1b", { tensor: 4, sequenceParallel }).states.weights,
    ) as [number, number];
    expect(neox - megatron).toBe((3 / 4) * table);
    const jamba = peakOf("jamba", { tensor: 2 }).states.weights;
    expect(jamba).toBeGreaterThan(
      peakOf("jamba", { tensor: 2, sequenceParallel: true }).states.weights,
    );
    const cautions = (name: string, library: Library = "transformers"): string =>
      limitsOf(modelOf(name), { mode: "train", tensor: 2, train: { library } }, []).join("; ");
    expect(cautions("llama-3.1-8b")).toMatch(/table of tokens, as transformers does from 5.21 on/);
    expect(cautions("gemma-2-9b")).not.toMatch(/5.21 on; before/);
    expect(cautions("jamba")).toMatch(/leaves attention, MLP, shared experts whole/);
    expect(cautions("gpt2")).toMatch(/no plan for --tp of gpt2/);
    expect(cautions("llama-3.1-8b", "torchtitan")).not.toMatch(/--tp/);
  });

  it("has no effect on one device", () => {
    const one = peakOf("llama-3.1-8b");
    const same = peakOf("llama-3.1-8b", { sequenceParallel: true });
    expect(same.allocatedBytes).toBe(one.allocatedBytes);
  });
});

it("context parallelism divides the tokens of all layers", () => {
  const request = { train: { sequence: 8192 } };
  const one = peakOf("llama-3.1-8b", request);
  const four = peakOf("llama-3.1-8b", { ...request, contextParallel: 4 });
  expect(four.simulation.savedBytes / one.simulation.savedBytes).toBeCloseTo(1 / 4, 3);
  expect(four.states.weights).toBe(one.states.weights);
});

describe("pipeline schedules", () => {
  const stages = (changes: Partial<PlanRequest>) =>
    peakOf("llama-2-7b", { pipeline: 4, train: { accumulation: 8 }, ...changes });

  it("1F1B: the first stage has as many microbatches in flight as there are stages", () => {
    const peak = stages({});
    expect([peak.rank, peak.inFlight]).toEqual(["pipeline stage 0 of 4", 4]);
  });

  it("GPipe: all microbatches", () => {
    expect(stages({ schedule: "gpipe" }).inFlight).toBe(8);
  });

  it("there are never more in flight than the step has", () => {
    const counts = (schedule: "1f1b" | "gpipe" | "interleaved", accumulation?: number) =>
      stages({ schedule, train: accumulation === undefined ? {} : { accumulation } }).inFlight;
    for (const schedule of ["1f1b", "gpipe", "interleaved"] as const) {
      expect([schedule, counts(schedule, 1), counts(schedule, 2)]).toEqual([schedule, 1, 2]);
    }
    // Unset, as many as keep the stages busy, whose gradients are added up.
    expect([counts("1f1b"), counts("gpipe"), counts("interleaved")]).toEqual([4, 4, 5.5]);
    expect(stages({ train: {} }).states.held).toBe("kept");
    expect(() => stages({ train: { optimizerInBackward: true } })).toThrow(/microbatches of --pp/);
  });

  it("refuses more pieces than the model has layers", () => {
    const check = (virtualStages: number) => {
      const model = readShape(MODELS["llama-2-7b"].config, "llama-2-7b", "config.json");
      const pieces = { schedule: "interleaved", pipeline: 4, virtualStages } as const;
      requireDivisible(model, planOptions(model, { mode: "train", ...pieces }));
    };
    check(8);
    expect(() => check(9)).toThrow(/4 pipeline stages of 9 pieces each; use --virtual-stages 8/);
  });

  it("interleaved: 1 + (p - 1) / (p v) as many as 1F1B (Narayanan et al., section 2.2)", () => {
    // (p - 1) 2 + (v - 1) p + 1 pieces of half a stage.
    expect(stages({ schedule: "interleaved" }).inFlight).toBe(5.5);
    const pieces = stages({ schedule: "interleaved", virtualStages: 4 });
    expect(pieces.inFlight).toBe((6 + 12 + 1) / 4);
  });
});

describe("DDP", () => {
  it("has buckets of all gradients, in the type of the weights", () => {
    const one = peakOf("llama-3.1-8b", { dtype: "bf16", train: { fp32Weights: true } });
    const four = peakOf("llama-3.1-8b", {
      dtype: "bf16",
      train: { fp32Weights: true },
      sharding: { kind: "ddp", devices: 4 },
    });
    expect(four.allocatedBytes - one.allocatedBytes).toBe(8_030_261_248 * 4);
  });
});

describe("expert parallelism", () => {
  const experts = (expert: number, devices: number) =>
    peakOf("mixtral", { expert, sharding: { kind: "fsdp", devices } });

  it("gives each rank its experts once, however the rest is divided", () => {
    const whole = peakOf("mixtral", { sharding: { kind: "fsdp", devices: 8 } }).states.weights;
    const both = experts(8, 8).states.weights;
    expect(both / whole).toBeCloseTo(1, 2);
  });

  it("plans the rank whose experts get more tokens than the mean, and two copies for the exchange", () => {
    const one = experts(1, 8);
    const eight = experts(8, 8);
    const moe = (peak: typeof one) => peak.simulation.savedAfterForward.get("moe") ?? 0;
    expect(moe(eight) / moe(one)).toBeGreaterThan(1.2);
    expect(moe(eight) / moe(one)).toBeLessThan(1.45);
  });
});

describe("adapters of experts", () => {
  const experts: Partial<PlanRequest> = {
    method: "lora",
    train: { adapterTargets: ["gate_up_proj"] },
  };
  const attention: Partial<PlanRequest> = {
    method: "lora",
    train: { adapterTargets: ["q_proj"] },
  };
  const both: Partial<PlanRequest> = {
    method: "lora",
    train: { adapterTargets: ["q_proj", "gate_up_proj"] },
  };
  const name = "qwen3-30b-a3b";

  it("are divided once, by FSDP and expert parallelism together", () => {
    const sharding = { kind: "fsdp", devices: 8 } as const;
    const fsdp = peakOf(name, { ...experts, sharding }).states;
    const divided = peakOf(name, { ...experts, sharding, expert: 8 }).states;
    expect(divided.adapters).toBe(fsdp.adapters);
    expect(divided.gradients).toBe(fsdp.gradients);
    expect(divided.optimizer).toBe(fsdp.optimizer);
  });

  it("stay where they are under DDP, which adds up the gradients of the rest", () => {
    const ddp = { sharding: { kind: "ddp", devices: 8 }, expert: 8 } as const;
    const reduced = (request: Partial<PlanRequest>): string | undefined => {
      const model = readShape(MODELS[name].config, name, "config.json");
      const options = planOptions(model, { mode: "train", ...request, ...ddp }) as TrainOptions;
      const { tape } = modelTape(model, trainingRules(model, options), { index: 0, count: 1 });
      return formulaIn(communicationOf(tape, options), tape);
    };
    expect(reduced(both)).toBe(reduced(attention));
    expect(reduced(both)).toMatch(/^buckets of gradients .*; without those of experts$/);
    expect(reduced(experts)).toBe("");
  });
});
