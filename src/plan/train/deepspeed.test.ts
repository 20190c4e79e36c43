/** Buffers and gradients of DeepSpeed, and what it refuses. */
import { describe, expect, it } from "vitest";
import { type PlanRequest, planOptions } from "../defaults.js";
import { requireDivisible } from "../divisible.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import type { Unit } from "../tape/tape.js";
import { formulaIn, MODELS, peakOf } from "./divided_peaks.fixture.js";

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

  it.each(["zero-2", "zero-3", "fsdp"] as const)(
    "of %s are on the host where the optimizer is, also on one device",
    (kind) => {
      const states = (offload: "none" | "optimizer") =>
        peakOf("llama-3.1-8b", { sharding: { kind, devices: 1, offload } }).states;
      expect(states("none").gradients).toBeGreaterThanOrEqual(8 * part);
      expect([states("optimizer").gradients, states("optimizer").optimizer]).toEqual([0, 0]);
      expect(states("optimizer").host).toBeGreaterThanOrEqual(12 * 8_030_261_248);
    },
  );

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
