import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { limitsOf } from "../assumptions.js";
import { type AdapterDetails, NO_DETAILS } from "../blocks/adapter_details.js";
import { modelTape } from "../blocks/model_tape.js";
import { type PlanRequest, planOptions } from "../defaults.js";
import { requireDivisible } from "../divisible.js";
import type { Library, TrainOptions } from "../job/options.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import type { Tape, Unit } from "../tape/tape.js";
import { trainingRules } from "./block_rules.js";
import { type Communication, communicationOf } from "./communication.js";
import { planTraining } from "./plan_training.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);

const modelOf = (name: string) => readShape(MODELS[name].config, name, "config.json");

function peakOf(name: string, request: Partial<PlanRequest> = {}) {
  const model = modelOf(name);
  const options = planOptions(model, { mode: "train", ...request }) as TrainOptions;
  return planTraining(model, options).peak;
}

/** In the backward pass of the first layer. */
function formulaIn(communication: Communication | null, tape: Tape): string {
  return communication?.formulaOf(tape.units[1] as Unit, true) ?? "";
}

const savedOf = (peak: ReturnType<typeof peakOf>, part: "norm" | "mlp" | "attention"): number =>
  peak.simulation.savedAfterForward.get(part) ?? 0;

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

describe("FSDP", () => {
  const lora = (version: 1 | 2, library: Library, details: Partial<AdapterDetails> = {}) =>
    peakOf("llama-3.1-8b", {
      method: "lora",
      sharding: { kind: "fsdp", devices: 8, version },
      train: {
        library,
        checkpointing: "full",
        sequence: 512,
        adapterDetails: { ...NO_DETAILS, ...details },
      },
    });
  const needed = (peak: ReturnType<typeof lora>): number =>
    Math.max(...peak.tape.units.map((unit) => peak.communication?.bytesOf(unit, true) ?? 0));

  it("counts weights in the type in which they are loaded, and PEFT's adapters in fp32", () => {
    const fsdp = { kind: "fsdp", devices: 2 } as const;
    const of = (request: Partial<PlanRequest>, name = "llama-3.1-8b") =>
      peakOf(name, { method: "lora", dtype: "bf16", sharding: fsdp, ...request }).states;
    expect(of({ weights: "fp32" }).weights).toBe(2 * of({ weights: "16bit" }).weights);
    expect(of({}).adapters).toBe(of({ weights: "fp32" }).adapters);
    expect(of({}).adapters).toBe((4 * of({}).counts.trainable) / 2);
    const qlora = (request: Partial<PlanRequest>) =>
      of({ method: "qlora", quantize: "nf4", ...request }, "mixtral").weights;
    // Experts are not quantized: in 16 bits, unless all that is not quantized is converted.
    expect(qlora({ weights: "fp32" }) / qlora({})).toBeGreaterThan(1.9);
    expect(qlora({})).toBe(qlora({ weights: "16bit" }));
  });

  it.each([
    ["litgpt", {}],
    ["transformers", { bias: "all" }],
  ] as const)(
    "version 1 of %s %j has a gradient of the whole flat parameter of a layer with adapters",
    (library, details) => {
      const difference = needed(lora(1, library, details)) - needed(lora(2, library, details));
      // A layer of Llama 3.1 8B in bf16: 218e6 parameters, and adapters.
      expect(difference).toBeGreaterThan(2 * 218e6);
      expect(difference).toBeLessThan(2 * 219e6);
    },
  );

  it("version 1 of the Trainer has none: each adapter is a unit of its own", () => {
    expect(needed(lora(1, "transformers"))).toBe(needed(lora(2, "transformers")));
  });
});

it("Fabric's mixed precision computes by autocast with fp32 weights, as on one device", () => {
  const rules = (devices: number, weights: "fp32" | "16bit") => {
    const model = readShape(MODELS["llama-3.1-8b"].config, "llama", "config.json");
    const options = planOptions(model, {
      mode: "train",
      dtype: "bf16",
      weights,
      ...(devices > 1 ? { sharding: { kind: "fsdp", devices } } : {}),
      train: { library: "litgpt" },
    }) as TrainOptions;
    const { autocast, weightBytes, castsInputs } = trainingRules(model, options);
    return { autocast, weightBytes, castsInputs };
  };
  expect(rules(8, "fp32")).toEqual({ autocast: true, weightBytes: 4, castsInputs: false });
  expect(rules(8, "fp32")).toEqual(rules(1, "fp32"));
  expect(rules(8, "16bit")).toEqual({ autocast: false, weightBytes: 2, castsInputs: true });
});

describe("FSDP that keeps gathered weights (SHARD_GRAD_OP)", () => {
  const fsdp = (keepsGathered: boolean, accumulation = 1, offload: "none" | "all" = "none") =>
    peakOf("llama-3.1-8b", {
      sharding: { kind: "fsdp", devices: 8, keepsGathered, offload },
      train: { accumulation, checkpointing: "full" },
    });

  it("has the states of FSDP, and nothing of DeepSpeed", () => {
    for (const accumulation of [1, 4]) {
      const { held, gradientBytesOf: _, ...states } = fsdp(true, accumulation).states;
      const { held: __, gradientBytesOf: ___, ...usual } = fsdp(false, accumulation).states;
      expect(states).toEqual(usual);
      expect([states.stepTemporary, held]).toEqual([0, accumulation === 1 ? "made" : "kept"]);
    }
    // Weights, gradients and two states in fp32, and no fp32 gradients beside these.
    expect(fsdp(true, 4, "all").states.host).toBe((8_030_261_248 * 16) / 8);
  });

  it("gathers layer by layer, and releases them in the backward pass", () => {
    const { tape, communication } = fsdp(true);
    const layers = tape.units.filter(({ checkpointable }) => checkpointable);
    const bytes = (index: number, backward = false) =>
      communication?.bytesOf(layers.at(index) as Unit, backward) ?? 0;
    const one = bytes(1) - bytes(0);
    // A layer of Llama 3.1 8B in bf16: 218e6 parameters.
    expect(one).toBeCloseTo(2 * 218_112_000, -6);
    expect(bytes(-1) - bytes(0)).toBe(30 * one);
    expect(bytes(-1, true) - bytes(0, true)).toBe(30 * one);
    const { communication: usual } = fsdp(false);
    expect(usual?.bytesOf(layers.at(-1) as Unit, false)).toBe(bytes(0));
  });
});

describe("gradients of FSDP under accumulation", () => {
  const parameters = 8_030_261_248;
  const peak = (changes: { library?: Library; accumulation?: number; version?: 1 | 2 }) =>
    peakOf("llama-3.1-8b", {
      sharding: { kind: "fsdp", devices: 8, version: changes.version ?? 2 },
      train: {
        accumulation: changes.accumulation ?? 4,
        library: changes.library ?? "transformers",
        checkpointing: "full",
      },
    });

  it("are whole and in the compute type in accelerate and Fabric, and divided elsewhere", () => {
    const bytesOf = (library: Library) => {
      const { states, simulation } = peak({ library });
      expect(states.gradients).toBe((parameters * 4) / 8);
      return [states.whole?.bytes ?? null, simulation.peak.gradients];
    };
    const whole = parameters * 2;
    expect(bytesOf("transformers")).toEqual([whole, whole]);
    // Fabric's "bf16-mixed" gathers in fp32.
    expect(bytesOf("litgpt")).toEqual([2 * whole, 2 * whole]);
    const divided = [null, (parameters * 4) / 8];
    expect([bytesOf("torchtune"), bytesOf("torchtitan")]).toEqual([divided, divided]);
    expect(peak({ accumulation: 1 }).states.whole).toBeNull();
  });

  it("and gathered weights are in fp32 in Fabric's mixed precision, and in 16 bits in its true one", () => {
    const planned = (library: Library, weights: "fp32" | "16bit") => {
      const { communication, tape, states } = peakOf("llama-3.1-8b", {
        dtype: "bf16",
        weights,
        sharding: { kind: "fsdp", devices: 8 },
        train: { library, accumulation: 4 },
      });
      const [layer] = tape.units.filter(({ checkpointable }) => checkpointable) as [Unit];
      const gathered = communication?.formulaOf(layer, false) ?? "";
      return [
        (states.whole?.bytes ?? 0) / parameters,
        /2 layers x \S+ x (\d) B/.exec(gathered)?.[1],
      ];
    };
    expect(planned("litgpt", "fp32")).toEqual([4, "4"]);
    expect(planned("litgpt", "16bit")).toEqual([2, "2"]);
    expect(planned("transformers", "fp32")).toEqual([2, "2"]);
  });

  it("are of all layers where adapters share version 1's flat parameters, without the frozen rest", () => {
    const formulaOf = (accumulation: number, library: Library) => {
      const { communication, tape } = peakOf("llama-3.1-8b", {
        method: "lora",
        sharding: { kind: "fsdp", devices: 8, version: 1 },
        train: { accumulation, library },
      });
      return formulaIn(communication, tape);
    };
    // 32 layers of 218.1e6, and adapters.
    expect(formulaOf(4, "litgpt")).toMatch(/gradients of all layers (?:6\.98|6\.99|7\.0)\d*e9 x/);
    expect(formulaOf(1, "litgpt")).not.toContain("all layers");
    expect(formulaOf(4, "transformers")).not.toContain("all layers");
  });
});

describe("buffers of DeepSpeed", () => {
  const bytesOf = (kind: "zero-1" | "zero-2" | "zero-3", changes: object = {}) => {
    const { tape, communication } = peakOf("llama-3.1-8b", {
      method: "lora",
      sharding: { kind, devices: 8, deepSpeed: { liveParameters: 0, ...changes } },
    });
    const layer = tape.units.find(({ checkpointable }) => checkpointable) as Unit;
    return [false, true].map((backward) => communication?.bytesOf(layer, backward));
  };
  // Queries, keys, values and outputs of 32 layers, at rank 8.
  const copy = 32 * 8 * (2 * 8192 + 2 * 5120) * 2;

  it("are whole buckets however few gradients there are, two only with overlap_comm", () => {
    expect(bytesOf("zero-2")).toEqual([0, 1e9 + copy]);
    expect(bytesOf("zero-1")).toEqual([0, 1e9 + copy]);
    expect(bytesOf("zero-2", { overlaps: true })).toEqual([0, 2e9 + copy]);
    expect(bytesOf("zero-3")).toEqual([1e9, 1e9 + copy]);
    expect(bytesOf("zero-3", { overlaps: true })).toEqual([1e9, 1e9 + copy]);
  });
});

describe("gradients of DeepSpeed", () => {
  const zero = (stage: 1 | 2 | 3, changes: object = {}, accumulation = 1) =>
    peakOf("llama-3.1-8b", {
      sharding: { kind: `zero-${stage}`, devices: 8, ...changes },
      train: { accumulation, checkpointing: "full" },
    });
  const part = (8_030_261_248 * 2) / 8;
  const held = (peak: ReturnType<typeof zero>) => peak.simulation.peak.gradients;

  it("stage 3 keeps its part, whether or not it accumulates", () => {
    expect(zero(3).simulation.peak.where).toMatch(/loss/);
    expect([held(zero(3)), held(zero(3, {}, 4))]).toEqual([part, part]);
  });

  it("stage 2 has its part while it adds up, and at the end a second one", () => {
    // Small buckets, so that the loss is the peak.
    const small = { deepSpeed: { reduceBucket: 1e6 } };
    expect([held(zero(2, small)), held(zero(2, small, 4))]).toEqual([0, part]);
    const long = (accumulation: number) =>
      peakOf("llama-3.1-8b", {
        sharding: { kind: "zero-2", devices: 8 },
        train: { accumulation, sequence: 64 },
      });
    expect(held(long(1)) + part).toBeCloseTo(held(long(4)), -9);
  });

  it("are on the host where the optimizer is, but for stage 1, which does not divide them", () => {
    const offload = { offload: "optimizer" } as const;
    // States, master weights and the gradients in fp32; stage 3, and what stage 2 adds up, in 16 bits, too.
    for (const [stage, accumulation, bytes] of [
      [2, 1, 16],
      [2, 4, 18],
      [3, 1, 18],
      [3, 4, 18],
    ] as const) {
      const peak = zero(stage, offload, accumulation);
      expect([held(peak), peak.states.gradients]).toEqual([0, 0]);
      expect([stage, accumulation, (peak.states.host * 8) / 8_030_261_248]).toEqual([
        stage,
        accumulation,
        bytes,
      ]);
    }
    expect(zero(1, offload).states.gradients).toBe(8 * part);
  });

  it("are copied in 16 bits and fp32 for the step, unless the optimizer is offloaded", () => {
    const step = (optimizer: "paged-adamw8bit" | "adamw8bit", offload: "none" | "optimizer") =>
      peakOf("llama-3.1-8b", {
        sharding: { kind: "zero-2", devices: 8, offload },
        train: { optimizer },
      }).states.stepTemporary;
    const copies = (8_030_261_248 * (2 + 4)) / 8;
    expect(step("paged-adamw8bit", "none")).toBe(copies);
    expect(step("adamw8bit", "none")).toBeGreaterThanOrEqual(copies);
    expect(step("adamw8bit", "optimizer")).toBe(0);
  });

  it.each([1, 2, 3] as const)(
    "stage %i keeps fp32 weights, in whatever type the model is loaded",
    (stage) => {
      const states = (weights: "16bit" | "fp32") =>
        peakOf("llama-3.1-8b", { weights, sharding: { kind: `zero-${stage}`, devices: 8 } }).states;
      expect(states("16bit").master).toBe((8_030_261_248 * 4) / 8);
      expect(states("16bit").optimizer).toBe(states("fp32").optimizer);
    },
  );
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

describe("what DeepSpeed refuses", () => {
  const model = readShape(MODELS["llama-3.1-8b"].config, "llama", "config.json");
  const check = (request: Partial<PlanRequest>) =>
    requireDivisible(model, planOptions(model, { mode: "train", ...request }));
  const zero = (stage: 1 | 2 | 3) => ({ kind: `zero-${stage}`, devices: 8 }) as const;

  it("pipelines in ZeRO-2 and ZeRO-3", () => {
    for (const stage of [2, 3] as const) {
      expect(() => check({ pipeline: 4, sharding: zero(stage) })).toThrow(
        /ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism/,
      );
    }
    check({ pipeline: 4, sharding: zero(1) });
    check({ pipeline: 4, sharding: { kind: "fsdp", devices: 8 } });
  });

  it("an optimizer in the backward pass, in all stages, and no row saves memory with it", () => {
    for (const stage of [1, 2, 3] as const) {
      expect(() => check({ sharding: zero(stage), train: { optimizerInBackward: true } })).toThrow(
        /DeepSpeed steps after the backward pass/,
      );
      const rows = planMemory(model, { mode: "train", sharding: zero(stage) }).savings;
      const names = rows.map(({ technique }) => technique);
      expect(names).not.toContain("optimizer step in the backward pass");
      expect(names).not.toContain("16-bit weights without an fp32 copy");
      expect(names).toContain("LoRA");
    }
  });
});

describe("experts with DeepSpeed", () => {
  it("pass through the buckets of the device that has them, and through no others", () => {
    const formula = (expert: number) => {
      const { communication, tape } = peakOf("mixtral", {
        expert,
        sharding: { kind: "zero-2", devices: 8 },
        method: "lora",
        train: { adapterTargets: ["w1", "gate_up_proj", "q_proj"] },
      });
      return formulaIn(communication, tape);
    };
    // The experts of one device of eight, or of all, at 2 B, copied from a bucket of 5e8.
    const elements = (expert: number) =>
      Number(/flat copy ([\d.]+(?:e\d+)?)/.exec(formula(expert))?.[1]);
    const { tape } = peakOf("mixtral", {
      method: "lora",
      train: { adapterTargets: ["w1", "gate_up_proj", "q_proj"] },
    });
    const trained = (isExpert: boolean) =>
      tape.parameters.reduce(
        (sum, each) =>
          sum + (each.trainable && (each.ofExperts === true) === isExpert ? each.elements : 0),
        0,
      );
    expect(trained(true)).toBeGreaterThan(0);
    expect(elements(1) / (trained(true) + trained(false))).toBeCloseTo(1, 2);
    expect(elements(8) / (trained(true) / 8 + trained(false))).toBeCloseTo(1, 2);
  });

  it("cannot be divided in ZeRO-3", () => {
    const model = readShape(MODELS.mixtral.config, "mixtral", "config.json");
    const options = planOptions(model, {
      mode: "train",
      expert: 8,
      sharding: { kind: "zero-3", devices: 8 },
    });
    expect(() => requireDivisible(model, options)).toThrow(/no expert parallelism in ZeRO-3/);
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
