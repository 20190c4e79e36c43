/** Every option changes the plan, or is named in a caution or a refusal. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { planOptions } from "../../src/plan/defaults.js";
import { requireDivisible } from "../../src/plan/divisible.js";
import { deviceCount } from "../../src/plan/job/options.js";
import { limitsOf } from "../../src/plan/limits.js";
import { planServing } from "../../src/plan/serve/plan_serving.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { hostParts } from "../../src/plan/train/host.js";
import { planTraining } from "../../src/plan/train/plan_training.js";
import { type PlanWords, requestOf } from "../../src/plan/words.js";
import { repository } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

const modelOf = (name: string) => readShape(MODELS[name]?.config ?? {}, name, name);

/** All figures of a job, and its cautions. null: refused. */
function figures(name: string, words: PlanWords): { text: string; limits: string[] } | null {
  const model = modelOf(name);
  try {
    const request = requestOf(words);
    const options = planOptions(model, request);
    requireDivisible(model, options);
    const limits = limitsOf(model, request, []);
    if (options.mode === "serve") {
      const { parts, hostBytes, room } = planServing(model, options);
      return {
        limits,
        text: JSON.stringify([parts, hostBytes, room?.bytes, deviceCount(options)]),
      };
    }
    const { peak, parts } = planTraining(model, options);
    const saved = [...peak.simulation.savedAfterForward];
    return { limits, text: JSON.stringify([parts, saved, hostParts(model, options, peak)]) };
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
}

/** Other values than the defaults. */
const TRAINING: PlanWords = {
  optimizer: "sgd",
  optimizerInBackward: true,
  batch: 2,
  seq: 256,
  checkpointing: "full",
  offloadActivations: true,
  dtype: "fp16",
  weights: "16bit",
  padding: false,
  loss: "fused",
  compile: true,
  loraRank: 16,
  loraTargets: "all",
  loraDropout: true,
  ddp: 2,
  fsdp: 2,
  zero: 1,
  tp: 2,
  cp: 2,
  ep: 2,
  workers: 4,
};
const SERVING: PlanWords = {
  padding: false,
  tp: 2,
  ep: 2,
  context: 100,
  concurrency: 3,
  kvDtype: "fp8",
  cacheTypeV: "q4_0",
  gpuLayers: 2,
  utilization: 0.5,
  batchedTokens: 1024,
  cudaGraphs: false,
};

const flagOf = (name: string): string =>
  `--${name === "padding" || name === "cudaGraphs" ? "no-" : ""}${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

function ignored(name: string, base: PlanWords, options: PlanWords): string[] {
  const before = figures(name, base);
  return Object.entries(options)
    .filter(([word, value]) => {
      const after = figures(name, { ...base, [word]: value });
      return (
        after !== null &&
        after.text === before?.text &&
        !after.limits.some((limit) => limit.includes(flagOf(word)))
      );
    })
    .map(([word]) => flagOf(word));
}

const NAMES = ["gpt2", "vit-b", "bert-base", "mamba-130m", "t5-small", "resnet50", "clip"];

test.each(NAMES)("training %s ignores no option silently", (name) => {
  expect(ignored(name, { batch: 3 }, TRAINING)).toEqual([]);
});

describe.each(["transformers", "vllm", "sglang", "tgi", "llama.cpp"] as const)("%s", (engine) => {
  test.each(NAMES)("serving %s ignores no option silently", (name) => {
    const dtype = engine === "transformers" ? "bf16" : "fp32";
    expect(ignored(name, { serve: true, engine }, { ...SERVING, dtype })).toEqual([]);
  });
});

describe("a model that does not fit", () => {
  test.each(["vllm", "sglang", "tgi"] as const)("%s still depends on its options", (engine) => {
    const words: PlanWords = { serve: true, engine };
    for (const options of [{ context: 8192 }, { concurrency: 7 }, { utilization: 0.95 }]) {
      expect(figures("llama-3.1-70b", { ...words, ...options })?.limits).toEqual([]);
    }
  });

  test("sequences that do not fit depend on their length and number", () => {
    const words: PlanWords = { serve: true, engine: "vllm" };
    const given: PlanWords = { ...words, concurrency: 256, context: 8192 };
    expect(figures("llama-3.1-8b", given)?.limits).toEqual([]);
  });
});

test("lengths that fill the same blocks are different ones", () => {
  for (const context of [2047, 8191, 8190]) {
    const words: PlanWords = { serve: true, engine: "llama.cpp", context };
    expect(figures("llama-3.1-8b", words)?.limits).toEqual([]);
  }
});

describe("the caution", () => {
  const limits = (name: string, words: PlanWords): string[] => figures(name, words)?.limits ?? [];

  test("names the options that were given, and no others", () => {
    expect(limits("gpt2", { loraRank: 4 })).toEqual([
      "--lora-rank has no effect: all weights are trained; add --method lora",
    ]);
    expect(limits("gpt2", { loraRank: 4, loraDropout: true })).toEqual([
      "--lora-rank and --lora-dropout have no effect: all weights are trained; add --method lora",
    ]);
  });

  test("gives the reason", () => {
    expect(limits("vit-b", { seq: 4096, loss: "fused" })).toEqual([
      "--seq has no effect: the model reads no text",
      "--loss has no effect: the model has no logits of tokens",
    ]);
  });

  test("is left out for the default", () => {
    expect(limits("gpt2", { serve: true, utilization: 1, batchedTokens: 8192 })).toEqual([]);
    expect(limits("gpt2", { seq: 1024, checkpointing: "none", loss: "full" })).toEqual([]);
  });
});

describe("options that need another one name only themselves", () => {
  test.each<[PlanWords, RegExp]>([
    [{ devices: 4 }, /TM-E002 --devices belongs to --zero; add --zero/],
    [{ offload: "all" }, /TM-E002 --offload belongs to --fsdp or --zero; add/],
    [{ offload: "all", devices: 4 }, /--devices and --offload belong to --zero; add --zero/],
    [{ fsdp: 4, devices: 2 }, /--fsdp 4 is a number of devices already; leave --devices out/],
    [{ ddp: 4, offload: "all" }, /--offload belongs to --fsdp and --zero/],
  ])("%j", (words, message) => {
    expect(() => requestOf(words)).toThrow(message);
  });
});
