/** Properties that hold for every plan: more work never takes less memory, and parts add up. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { type PlanRequest, planOptions } from "../../src/plan/defaults.js";
import { figureOf } from "../../src/plan/device/allocator.js";
import { requireDivisible } from "../../src/plan/divisible.js";
import type { TrainOptions } from "../../src/plan/job/options.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { planTraining } from "../../src/plan/train/plan_training.js";
import { repository } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

const NAMES = [
  "gpt2",
  "qwen3-0.6b",
  "gemma3-1b",
  "pythia-1b",
  "phi-1.5",
  "t5-small",
  "bert-base",
  "mamba-130m",
  "opt-1.3b",
  "bloom-560m",
];

/** A linear congruential generator: every run plans the same jobs. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

interface Planned {
  readonly options: TrainOptions;
  readonly allocated: number;
  /** Without gathered weights and buckets. */
  readonly divided: number;
}

/** Null where the job is refused. */
function planned(name: string, request: PlanRequest): Planned | null {
  const model = readShape(MODELS[name]?.config ?? {}, name, name);
  try {
    const options = planOptions(model, request) as TrainOptions;
    requireDivisible(model, options);
    const { parts } = planTraining(model, options);
    for (const figure of ["allocated", "reserved", "device"] as const) {
      const { bytes, low, high } = figureOf(parts, figure);
      expect([name, request, low <= bytes && bytes <= high]).toEqual([name, request, true]);
    }
    const sum = (wanted: (part: string) => boolean): number =>
      parts.reduce((total, each) => total + (wanted(each.part) ? each.bytes : 0), 0);
    expect(figureOf(parts, "device").bytes).toBe(sum(() => true));
    const { bytes: allocated } = figureOf(parts, "allocated");
    expect(new Set(parts.map(({ part }) => part)).size).toBe(parts.length);
    const communication = parts.find(({ part }) => part === "communication");
    return { options, allocated, divided: allocated - (communication?.bytes ?? 0) };
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
}

test("more sequences, longer ones, fewer devices or no checkpointing never take less memory", () => {
  const next = numbers(5);
  const one = <Value>(values: readonly Value[]): Value => values[next(values.length)] as Value;
  let compared = 0;
  for (let index = 0; index < 70; index++) {
    const name = one(NAMES);
    const kind = one(["ddp", "fsdp", "fsdp", "zero-2", "zero-3"] as const);
    const sharding = { kind, devices: kind === "ddp" ? 1 : 2, version: one([1, 2] as const) };
    const train = {
      batch: 1,
      sequence: one([64, 192]),
      accumulation: one([1, 1, 4]),
      checkpointing: "none",
      optimizer: one(["adamw", "adamw-foreach", "sgd", "adafactor"] as const),
      attention: one(["sdpa", "eager"] as const),
      loss: one(["full", "fused"] as const),
    } as const;
    const request: PlanRequest = {
      mode: "train",
      method: one(["full", "lora", "qlora"] as const),
      dtype: one(["bf16", "fp32"] as const),
      sharding,
      train,
    };
    const usual = planned(name, request);
    if (usual === null) {
      continue;
    }
    const words = [name, request];
    const changed = (changes: Partial<PlanRequest>) => planned(name, { ...request, ...changes });
    const larger = [
      changed({ train: { ...train, batch: 2 } }),
      changed({ train: { ...train, sequence: train.sequence * 2 } }),
    ];
    for (const each of larger) {
      if (each !== null) {
        expect([words, each.allocated >= usual.allocated]).toEqual([words, true]);
        compared += 1;
      }
    }
    const recomputed = changed({ train: { ...train, checkpointing: "full" } });
    if (recomputed !== null) {
      // A layer that is recomputed has its input twice for a moment, and adapters need its gradient.
      const room = request.method === "full" ? 1.02 : 1.1;
      expect([words, recomputed.allocated <= usual.allocated * room]).toEqual([words, true]);
      compared += 1;
    }
    const more = kind === "fsdp" ? changed({ sharding: { ...sharding, devices: 8 } }) : null;
    if (more !== null) {
      expect([words, more.divided <= usual.divided * 1.001]).toEqual([words, true]);
      compared += 1;
    }
  }
  expect(compared).toBeGreaterThan(120);
});
