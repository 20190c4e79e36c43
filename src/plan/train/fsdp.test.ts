/** What FSDP gathers, keeps and reduces. */
import { describe, expect, it } from "vitest";
import { type AdapterDetails, NO_DETAILS } from "../blocks/adapter_details.js";
import { type PlanRequest, planOptions } from "../defaults.js";
import type { Library, TrainOptions } from "../job/options.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import type { Unit } from "../tape/tape.js";
import { trainingRules } from "./block_rules.js";
import { formulaIn, MODELS, modelOf, peakOf } from "./divided_peaks.fixture.js";

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
  it("name the setting that divides them, and the versions that read it", () => {
    const assumed = (library: Library): string =>
      planMemory(modelOf("qwen3-0.6b"), {
        mode: "train",
        sharding: { kind: "fsdp", devices: 4 },
        train: { library, accumulation: 4 },
      }).assumptions.join("; ");
    expect(assumed("transformers")).toMatch(
      /; sync_each_batch of GradientAccumulationPlugin \(accelerate from 0\.31 on; .* divides them/,
    );
    expect(assumed("litgpt")).not.toMatch(/sync_each_batch/);
  });

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
