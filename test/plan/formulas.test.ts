/** Formulas multiply out: where a row's formula is a sum of products, it gives the bytes of the row. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PlanPartJson } from "../../src/model/documents/plan_document.js";
import { TidemarkError } from "../../src/model/errors/errors.js";
import type { PlanRequest } from "../../src/plan/defaults.js";
import { planOptions } from "../../src/plan/defaults.js";
import { gpuNamed } from "../../src/plan/device/gpus.js";
import { requireDivisible } from "../../src/plan/divisible.js";
import { planServing } from "../../src/plan/serve/plan_serving.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { planTraining } from "../../src/plan/train/plan_training.js";
import { repository } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

const UNITS: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** "a rule: 3.2e9 of 8.03e9 parameters x 2 B / 8 + 2 layers x 4 MiB; remarks"; null if nothing is multiplied. */
function evaluated(formula: string): number | null {
  const sum = (formula.split(";")[0] ?? "").split(": ").at(-1) ?? "";
  if (!/\d[^x]* x /.test(sum) || /[%(]/.test(sum)) {
    return null;
  }
  return sum.split(" + ").reduce((total, term) => {
    const divisor = Number(/ \/ (\d+)$/.exec(term)?.[1] ?? 1);
    const product = term.split(" x ").reduce((all, factor) => {
      const [, number = "NaN", unit = ""] =
        /(\d[\d.]*(?:e\d+)?)(?:[^\d]*? (KiB|MiB|GiB|B)\b)?/.exec(factor) ?? [];
      return all * Number(number) * (UNITS[unit] ?? 1);
    }, 1);
    return total + product / divisor;
  }, 0);
}

const ALWAYS = ["weights", "adapters", "gradients", "optimizer", "activations", "communication"];

function requireProducts(name: string, request: PlanRequest, parts: readonly PlanPartJson[]): void {
  for (const { part, bytes, formula } of parts) {
    const value = evaluated(formula);
    const isProduct = ALWAYS.includes(part) && !/NCCL|of the file/.test(formula);
    if (isProduct && bytes > 0) {
      expect(value, `${name} ${part}: ${formula}`).not.toBeNull();
    }
    if (value !== null) {
      const error = Math.abs(value - bytes);
      const where = `${name} ${JSON.stringify(request)} ${part}: ${formula} is ${value}, not ${bytes}`;
      expect(error <= 0.001 * bytes + 1024, where).toBe(true);
    }
  }
}

/** The same numbers in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

const NAMES = [
  "gpt2",
  "llama-3.1-8b",
  "mixtral",
  "qwen3-30b-a3b",
  "gemma-2-9b",
  "t5-small",
  "bert-base",
  "vit-b",
  "mamba-130m",
  "jamba",
  "gpt-oss-20b",
  "sd15-unet",
];

test("of training, in random configurations", () => {
  const next = numbers(7);
  const one = <Value>(values: readonly Value[]): Value => values[next(values.length)] as Value;
  let planned = 0;
  for (let index = 0; index < 120; index++) {
    const name = one(NAMES);
    const kind = one(["ddp", "fsdp", "fsdp", "zero-1", "zero-2", "zero-3"] as const);
    const method = one(["full", "full", "lora", "qlora"] as const);
    const request: PlanRequest = {
      mode: "train",
      method,
      dtype: one(["bf16", "fp32"] as const),
      tensor: one([1, 1, 2]),
      pipeline: one([1, 1, 2]),
      expert: one([1, 1, 8]),
      sharding: {
        kind,
        devices: one([1, 8, 8]),
        version: one([1, 2] as const),
        offload: kind === "ddp" ? "none" : one(["none", "none", "optimizer"] as const),
      },
      train: {
        batch: one([1, 3]),
        accumulation: one([1, 4]),
        checkpointing: one(["none", "full", "selective"] as const),
        optimizer: one(["adamw", "adamw8bit", "adafactor", "muon", "sgd"] as const),
        loss: one(["full", "fused"] as const),
        sequence: one([64, 512]),
      },
    };
    const model = readShape(MODELS[name]?.config ?? {}, name, name);
    try {
      const options = planOptions(model, request);
      requireDivisible(model, options);
      if (options.mode === "train") {
        requireProducts(name, request, planTraining(model, options).parts);
        planned += 1;
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
    }
  }
  expect(planned).toBeGreaterThan(50);
});

test("of serving, in random configurations", () => {
  const next = numbers(11);
  const one = <Value>(values: readonly Value[]): Value => values[next(values.length)] as Value;
  let planned = 0;
  for (let index = 0; index < 80; index++) {
    const name = one(NAMES);
    const gpu = gpuNamed(one(["h100", "a100", "4090"]));
    const request: PlanRequest = {
      mode: "serve",
      ...(gpu === undefined ? {} : { gpu }),
      tensor: one([1, 1, 2, 4]),
      pipeline: one([1, 1, 2, 3]),
      serve: {
        engine: one(["transformers", "vllm", "sglang", "tgi", "llama.cpp"] as const),
        context: one([128, 500]),
        concurrency: one([1, 4]),
        gpuLayers: one([1, 5, 100]),
      },
    };
    const model = readShape(MODELS[name]?.config ?? {}, name, name);
    const quantize = one([null, null, "int4", "int8"] as const);
    try {
      const options = planOptions(model, quantize === null ? request : { ...request, quantize });
      requireDivisible(model, options);
      if (options.mode === "serve") {
        requireProducts(name, request, planServing(model, options).parts);
        planned += 1;
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
    }
  }
  expect(planned).toBeGreaterThan(30);
});

test("where the peak is in the first layer", () => {
  const model = readShape(MODELS.gpt2?.config ?? {}, "gpt2", "gpt2");
  const options = planOptions(model, {
    mode: "train",
    sharding: { kind: "ddp", devices: 8 },
    train: { checkpointing: "full", loss: "fused", sequence: 64, optimizer: "sgd" },
  });
  if (options.mode === "train") {
    const { peak, parts } = planTraining(model, options);
    expect(peak.simulation.peak.where).toMatch(/decoder\.0|embedding/);
    requireProducts("gpt2", { mode: "train" }, parts);
  }
  expect.hasAssertions();
});
